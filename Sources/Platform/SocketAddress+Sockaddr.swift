import CTrunklineLinux
import Glibc
import TrunklineBytes

extension SocketAddress {
  /// Writes the address for the kernel and returns its length. No allocation.
  public func write(to storage: UnsafeMutablePointer<sockaddr_storage>) -> socklen_t {
    let raw = UnsafeMutableRawPointer(storage)
    switch ip.family {
    case .v4:
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = UInt32(truncatingIfNeeded: ip.low).bigEndian
      raw.storeBytes(of: address, as: sockaddr_in.self)
      return socklen_t(MemoryLayout<sockaddr_in>.size)
    case .v6:
      var address = sockaddr_in6()
      address.sin6_family = sa_family_t(AF_INET6)
      address.sin6_port = port.bigEndian
      withUnsafeMutableBytes(of: &address.sin6_addr) { bytes in
        bytes.storeBytes(of: ip.high.bigEndian, toByteOffset: 0, as: UInt64.self)
        bytes.storeBytes(of: ip.low.bigEndian, toByteOffset: 8, as: UInt64.self)
      }
      raw.storeBytes(of: address, as: sockaddr_in6.self)
      return socklen_t(MemoryLayout<sockaddr_in6>.size)
    }
  }

  /// Reads what the kernel wrote; nil for another family. IPv4-mapped addresses come out as IPv4. No allocation.
  public init?(_ storage: UnsafePointer<sockaddr_storage>) {
    let raw = UnsafeRawPointer(storage)
    switch Int32(storage.pointee.ss_family) {
    case AF_INET:
      let address = raw.load(as: sockaddr_in.self)
      self.init(IPAddress(v4: UInt32(bigEndian: address.sin_addr.s_addr)), UInt16(bigEndian: address.sin_port))
    case AF_INET6:
      let address = raw.load(as: sockaddr_in6.self)
      let (high, low) = withUnsafeBytes(of: address.sin6_addr) { bytes in
        (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      }
      self.init(
        IPAddress(v6High: UInt64(bigEndian: high), low: UInt64(bigEndian: low)).unmapped, UInt16(bigEndian: address.sin6_port))
    default: return nil
    }
  }

  /// The address in the form that the kernel's calls accept.
  public func withSockaddr<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    var storage = sockaddr_storage()
    let length = write(to: &storage)
    return withUnsafePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }

  /// Runs a call that fills in an address (`getsockname`, `accept`) and reads it.
  static func read(_ fill: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32)
    -> (Int32, SocketAddress?)
  {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { fill($0, &length) }
    }
    return (result, result < 0 ? nil : withUnsafePointer(to: &storage) { SocketAddress($0) })
  }
}
