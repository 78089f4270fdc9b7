import Trunking
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineSIPDialogs

/// Values of more than one section.
extension Field {
  /// A text, or for `env:NAME` the environment's.
  func environmentText() -> String? {
    guard let text = string() else { return nil }
    guard text.hasPrefix("env:") else { return text }
    let name = String(text.dropFirst(4))
    if let value = parser.environment[name], !value.isEmpty { return value }
    problem("the environment has no \(name), or it is empty")
    return nil
  }

  /// `203.0.113.5`, `sip.example.com`, `203.0.113.5:5070` or `env:NAME`.
  func advertisedHost(acceptsPort: Bool = true) -> AdvertisedHost? {
    guard let text = environmentText() else { return nil }
    guard let host = AdvertisedHost(text), acceptsPort || host.port == nil else {
      problem("expected an address or a host name\(acceptsPort ? ", with a port or without" : "") (or env:NAME), got \"\(text)\"")
      return nil
    }
    if host.address?.isUnspecified == true { problem("must be an address that peers can reach, not \(host)") }
    return host
  }

  /// The content of a WAV file.
  func audio(limit: Int) -> Recording? {
    guard let name = string(), let bytes = fileContent(limit: limit) else { return nil }
    do throws(WAVFile.FormatError) {
      return try WAVFile.recording(of: bytes)
    } catch {
      problem("\(parser.resolve(name)): \(error)")
      return nil
    }
  }

  /// A SIP URI with the host and port as written, and the next hop that it names.
  func sipURI() -> SIPAddress? {
    guard let text = value("a SIP URI such as sip:192.0.2.1:5060;transport=tcp", { $0 }) else { return nil }
    let isSIPS = text.hasPrefix("sips:")
    guard isSIPS || text.hasPrefix("sip:") else {
      return refuse("expected a SIP URI such as sip:192.0.2.1:5060;transport=tcp, got \"\(text)\"")
    }
    let parts = text.dropFirst(isSIPS ? 5 : 4).split(separator: ";", omittingEmptySubsequences: false)
    let domain = String(parts.first ?? "")
    var transport: TransportProtocol?
    for parameter in parts.dropFirst() {
      switch parameter.lowercased() {
      case "transport=udp": transport = .udp
      case "transport=tcp": transport = .tcp
      case "transport=tls": transport = .tls
      default: return refuse("unknown parameter \"\(parameter)\"; known: transport=udp, transport=tcp, transport=tls")
      }
    }
    if isSIPS, transport == .udp { return refuse("sips: is TLS, not UDP") }
    guard !domain.isEmpty, !domain.contains("@"), !domain.contains("?") else {
      return refuse("expected host or host:port after sip:, got \"\(domain)\"")
    }
    guard let (host, port) = hostAndPort(domain) else { return nil }
    let server = ServerURI(host: host, port: port, transport: isSIPS ? .tls : transport, isSecure: isSIPS)
    return SIPAddress(text: text, domain: domain, server: server)
  }

  private func hostAndPort(_ domain: String) -> (String, UInt16?)? {
    if let address = SocketAddress(domain) { return (address.ip.description, address.port) }
    let bare = domain.hasPrefix("[") && domain.hasSuffix("]") ? String(domain.dropFirst().dropLast()) : domain
    if IPAddress(bare) != nil { return (bare, nil) }
    let host = domain.split(separator: ":", omittingEmptySubsequences: false)
    guard host.count <= 2, let name = host.first, isHostName(name) else {
      return refuse("expected host or host:port, got \"\(domain)\"")
    }
    guard host.count == 2 else { return (String(name), nil) }
    guard let number = UInt16(host[1]), number > 0 else { return refuse("port \"\(host[1])\" is outside 1...65535") }
    return (String(name), number)
  }

  private func refuse<Value>(_ why: String) -> Value? {
    problem(why)
    return nil
  }
}

/// A SIP URI of the file.
struct SIPAddress: Sendable {
  var text: String
  /// `host` or `host:port` as written.
  var domain: String
  var server: ServerURI
}

/// `+` and digits, or digits alone, at most 20 of them.
func number(_ text: String) -> String? {
  let digits = text.hasPrefix("+") ? text.dropFirst() : text[...]
  return (1...20).contains(digits.count) && digits.allSatisfy { ("0"..."9").contains($0) } ? text : nil
}

/// A prefix of a number, which may be empty or `+` alone.
func prefix(_ text: String) -> String? {
  text.isEmpty || text == "+" ? text : number(text)
}

/// `20000-21999`, both ends within 1024…65535.
func portRange(_ text: String) -> ClosedRange<UInt16>? {
  let ends = text.split(separator: "-", omittingEmptySubsequences: false)
  guard ends.count == 2, let first = UInt16(ends[0]), let last = UInt16(ends[1]), first >= 1024, first <= last else { return nil }
  return first...last
}

func portText(_ range: ClosedRange<UInt16>) -> String { "\(range.lowerBound)-\(range.upperBound)" }
