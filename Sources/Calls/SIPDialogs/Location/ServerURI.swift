public import TrunklineBytes
import TrunklineSIP

/// The next hop that a trunk's `uri` names.
///
///     ServerURI("sip:carrier.example;transport=tcp")
///     ServerURI("sips:192.0.2.1:5061")
public struct ServerURI: Hashable, Sendable {
  /// Without brackets, lower case.
  public var host: String
  public var port: UInt16?
  /// The transport of `;transport=`; nil if it leaves the choice to DNS.
  public var transport: TransportProtocol?
  /// `sips:`, or `;transport=tls`: TLS is required.
  public var isSecure: Bool

  public init(host: String, port: UInt16? = nil, transport: TransportProtocol? = nil, isSecure: Bool = false) {
    (self.host, self.port, self.transport) = (host.lowercased(), port, transport)
    self.isSecure = isSecure || transport == .tls
  }

  /// The server of a route (`<sip:proxy.example;lr>`); nil if it is no SIP URI.
  public init?(route: String) {
    let text = route.drop { $0 != "<" }.dropFirst().prefix { $0 != ">" }
    let bytes = Array(text.utf8)
    guard let uri = try? URI(bytes), uri.scheme == .sip || uri.scheme == .sips, !uri.host.isEmpty else { return nil }
    let parameters = bytes.text(uri.parameters).lowercased().split(separator: ";")
    let named = parameters.first { $0.hasPrefix("transport=") }.map { String($0.dropFirst("transport=".count)) }
    let host = bytes.text(uri.host).trimmingPrefix("[")
    self.init(
      host: String(host.hasSuffix("]") ? host.dropLast() : host), port: uri.port,
      transport: named.flatMap { name in TransportProtocol.allCases.first { $0.rawValue.lowercased() == name } },
      isSecure: uri.scheme == .sips)
  }

  /// The address, if the host is one.
  public var address: IPAddress? { IPAddress(host) }

  /// Default ports of RFC 3261 §19.1.2.
  public static func port(of transport: TransportProtocol) -> UInt16 { transport == .tls ? 5061 : 5060 }
}
