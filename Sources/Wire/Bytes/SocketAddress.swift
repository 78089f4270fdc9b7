/// An address and a port, the key of every flow.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
  public var ip: IPAddress
  public var port: UInt16

  @inlinable public init(_ ip: IPAddress, _ port: UInt16) {
    self.ip = ip
    self.port = port
  }

  /// Parses `1.2.3.4:5060` or `[2001:db8::1]:5060`; nil for anything else (no names, the port is required).
  public init?(_ text: some StringProtocol) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    var host = text[..<colon]
    if host.first == "[" {
      guard host.last == "]" else { return nil }
      host = host.dropFirst().dropLast()
      guard let ip = IPAddress(host), ip.family == .v6 else { return nil }
      self.init(ip, port)
    } else {
      guard let ip = IPAddress(host), ip.family == .v4 else { return nil }
      self.init(ip, port)
    }
  }

  public var description: String { ip.family == .v4 ? "\(ip):\(port)" : "[\(ip)]:\(port)" }
}
