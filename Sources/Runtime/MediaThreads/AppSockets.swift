import TrunklineBytes
import TrunklinePlatform

/// The sockets of one media thread that app legs share, one for each address. Addresses are added and removed while it runs: a
/// socket is retired, and closed when no session is left that was offered it. Sessions have serial numbers: `after` is that of
/// the first session that was not offered it.
struct AppSockets: ~Copyable {
  private struct Entry {
    let socket: UDPSocket
    /// Nil: in use.
    var retired: UInt64?
  }
  /// By the index in epoll's data; slots are used again.
  private var entries: [Entry?] = []
  private var descriptors: [Int32] = []
  private(set) var hasRetired = false

  /// -1 if there is none. HOT
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

  /// The descriptors of the retired sockets that no session uses, if `oldest` is the oldest session's serial number.
  func over(oldest: UInt64) -> [Int32] { entries.compactMap { isOver($0, oldest) ? $0?.socket.fd : nil } }

  mutating func close(oldest: UInt64) {
    for index in entries.indices where isOver(entries[index], oldest) { (entries[index], descriptors[index]) = (nil, -1) }
    hasRetired = entries.contains { $0?.retired != nil }
  }

  private func isOver(_ entry: Entry?, _ oldest: UInt64) -> Bool { entry?.retired.map { $0 <= oldest } ?? false }
}
