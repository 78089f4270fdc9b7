import Glibc
import TrunklineBytes

/// One snapshot of the machine's interfaces that are up: a value, so that its use can be tested without a machine.
///
///     let machine = try MachineAddresses.look()
///     machine.usable()               // [192.0.2.7, 2001:db8::7]
///     machine.usable(loopback: true) // [192.0.2.7, 127.0.0.1, 2001:db8::7, ::1]
public struct MachineAddresses: Hashable, Sendable {
  public struct Entry: Hashable, Sendable {
    public var ip: IPAddress
    /// Nil if the kernel reports none.
    public var prefixLength: Int?
    /// The interface has a carrier.
    public var isRunning: Bool
    /// IPv6: it must not be used for new connections: deprecated (RFC 4862 §5.5.4), or possibly used by another machine
    /// (tentative, duplicate; §5.4).
    public var isWithheld: Bool
    public init(_ ip: IPAddress, prefixLength: Int? = nil, isRunning: Bool = true, isWithheld: Bool = false) {
      (self.ip, self.prefixLength, self.isRunning, self.isWithheld) = (ip, prefixLength, isRunning, isWithheld)
    }
  }
  /// In the kernel's order, at most `Limits.localAddresses`. An address may occur twice, on two interfaces.
  public var entries: [Entry]

  public init(_ entries: [Entry] = []) { self.entries = entries }

  /// Reads the interfaces from the kernel: a few system calls. Any thread.
  public static func look() throws(SystemError) -> MachineAddresses {
    let withheld = withheldAddresses(systemFile("/proc/self/net/if_inet6"))
    return MachineAddresses(
      try interfaceAddresses().map { ip, mask, isRunning in
        Entry(
          ip, prefixLength: mask.map { $0.high.nonzeroBitCount + $0.low.nonzeroBitCount }, isRunning: isRunning,
          isWithheld: withheld.contains(ip))
      })
  }

  /// Addresses of interfaces that have a carrier, without link-local and withheld ones, each once; IPv4 before IPv6, each in the
  /// kernel's order. Loopback addresses follow only if requested, or if there are no others and `loopback` is nil.
  public func usable(loopback: Bool? = false) -> [IPAddress] {
    var found: [IPAddress] = []
    for entry in entries where entry.isRunning && !entry.isWithheld && !entry.ip.isLinkLocal && !found.contains(entry.ip) {
      found.append(entry.ip)
    }
    let outside = found.filter { !$0.isLoopback }
    let inside = found.filter(\.isLoopback)
    let chosen = loopback == true || (loopback == nil && outside.isEmpty) ? outside + inside : outside
    return chosen.filter { $0.family == .v4 } + chosen.filter { $0.family == .v6 }
  }

  /// The networks of the interfaces, by their masks; without loopback.
  public var networks: [IPNetwork] {
    var found: [IPNetwork] = []
    for entry in entries where !entry.ip.isLoopback {
      guard let length = entry.prefixLength else { continue }
      let network = IPNetwork(entry.ip, prefixLength: length)
      if !found.contains(network) { found.append(network) }
    }
    return found
  }

  /// Whether an address that the operator configured can be used now: an interface with a carrier has it. Nil: no interface that
  /// is up has it, which a machine may still allow (`isBindable`).
  public func serves(_ ip: IPAddress) -> Bool? {
    let found = entries.filter { $0.ip == ip }
    return found.isEmpty ? nil : found.contains { $0.isRunning }
  }
}

/// Unusable addresses in the kernel's table of IPv6 addresses, which getifaddrs does not report: those that are deprecated,
/// failed duplicate detection, or await it and are not optimistic (RFC 4429). Lines: address, index, prefix length, scope, flags
/// (all hexadecimal), interface.
func withheldAddresses(_ table: String) -> Set<IPAddress> {
  let (optimistic, failed, deprecated, tentative): (UInt32, UInt32, UInt32, UInt32) = (0x04, 0x08, 0x20, 0x40)
  var found: Set<IPAddress> = []
  for line in table.split(separator: "\n").prefix(Limits.localAddresses * 4) {
    let fields = line.split(separator: " ")
    guard fields.count >= 6, fields[0].count == 32, let flags = UInt32(fields[4], radix: 16),
      let high = UInt64(fields[0].prefix(16), radix: 16), let low = UInt64(fields[0].suffix(16), radix: 16)
    else { continue }
    let waits = flags & tentative != 0 && flags & optimistic == 0
    if waits || flags & (failed | deprecated) != 0 { found.insert(IPAddress(v6High: high, low: low)) }
  }
  return found
}

/// Reads a small kernel file; empty if it cannot be read.
private func systemFile(_ path: String) -> String {
  let fd = open(path, O_RDONLY | O_CLOEXEC)
  guard fd >= 0 else { return "" }
  defer { close(fd) }
  var bytes = [UInt8](repeating: 0, count: 65_536)
  var count = 0
  while count < bytes.count {
    let got = bytes[count...].withUnsafeMutableBytes { read(fd, $0.baseAddress, $0.count) }
    guard got > 0 else { break }
    count += got
  }
  return String(decoding: bytes.prefix(count), as: UTF8.self)
}

/// Address and mask of each interface that is up, and whether it has a carrier; at most `Limits.localAddresses`.
private func interfaceAddresses() throws(SystemError) -> [(ip: IPAddress, mask: IPAddress?, isRunning: Bool)] {
  var first: UnsafeMutablePointer<ifaddrs>?
  guard getifaddrs(&first) == 0 else { throw SystemError("list interfaces") }
  defer { freeifaddrs(first) }
  var found: [(ip: IPAddress, mask: IPAddress?, isRunning: Bool)] = []
  var next = first
  while let entry = next, found.count < Limits.localAddresses {
    next = entry.pointee.ifa_next
    guard entry.pointee.ifa_flags & UInt32(IFF_UP) != 0, let ip = ipAddress(entry.pointee.ifa_addr) else { continue }
    found.append((ip, ipAddress(entry.pointee.ifa_netmask), entry.pointee.ifa_flags & UInt32(IFF_RUNNING) != 0))
  }
  return found
}
