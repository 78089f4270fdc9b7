import Bytes
import Platform

/// The sockets of one media thread that app legs share, one for each address. Addresses come and go while it runs: a socket is retired, and closed
/// when no session is left that was offered it. Sessions have serial numbers: `after` is the first one's that was not.
struct AppSockets: ~Copyable {
  private struct Entry {
    let socket: UDPSocket
    /// Nil: in use.
    var retired: UInt64?
  }
  /// By the index that epoll returns; slots are reused.
  private var entries: [Entry?] = []
  private var descriptors: [Int32] = []
  private(set) var hasRetired = false

  /// -1 where there is none. HOT
  func descriptor(_ index: Int) -> Int32 { index < descriptors.count ? descriptors[index] : -1 }

  /// - Returns: its index.
  mutating func add(_ socket: UDPSocket) -> Int {
    let free = entries.firstIndex { $0 == nil }
    let index = free ?? entries.count
    if free == nil {
      entries.append(nil)
      descriptors.append(-1)
    }
    (entries[index], descriptors[index]) = (Entry(socket: socket), socket.fd)
    return index
  }

  mutating func retire(_ address: IPAddress, after serial: UInt64) {
    for index in entries.indices where entries[index]?.socket.localAddress.ip == address && entries[index]?.retired == nil {
      entries[index]?.retired = serial
      hasRetired = true
    }
  }

  /// The descriptors of those that no session uses, if the oldest one has this number.
  func over(oldest: UInt64) -> [Int32] { entries.compactMap { isOver($0, oldest) ? $0?.socket.fd : nil } }

  mutating func close(oldest: UInt64) {
    for index in entries.indices where isOver(entries[index], oldest) { (entries[index], descriptors[index]) = (nil, -1) }
    hasRetired = entries.contains { $0?.retired != nil }
  }

  private func isOver(_ entry: Entry?, _ oldest: UInt64) -> Bool { entry?.retired.map { $0 <= oldest } ?? false }
}
