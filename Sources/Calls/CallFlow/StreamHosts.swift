public import Bytes

/// Where a program may send a call's audio (`POST /v1/calls/ID/stream`): a URL is a program's word, and must not make us speak with our own
/// network. Hosts are named by the configuration; what their names lead to is public, or in a network that it names.
///
///     var hosts = StreamHosts()
///     hosts.hosts = [StreamHosts.Host("*.bots.example")!]
///     hosts.target(StreamURL("wss://a.bots.example/call")!, .mulaw)      // of public addresses
///     hosts.target(StreamURL("wss://a.bots.example:22/")!, .mulaw)       // nil: another port
public struct StreamHosts: Sendable, Equatable {
  /// A host with the port and scheme that are spoken there.
  public struct Host: Sendable, Hashable {
    /// In lower case, without `*.`.
    let name: String
    let isWildcard: Bool
    let port: UInt16
    let isSecure: Bool

    /// `bot.example`, `*.bots.example`, `bot.example:8443`, and with `ws://` before it of this machine. Nil for anything else.
    public init?(_ text: String) {
      let parts =
        text.firstRange(of: "://").map { (String(text[..<$0.lowerBound]), text[$0.upperBound...]) } ?? ("wss", text[...])
      let isWildcard = parts.1.hasPrefix("*.")
      let name = isWildcard ? parts.1.dropFirst(2) : parts.1
      guard !name.contains(where: { "*/?".contains($0) }), let url = StreamURL(parts.0 + "://" + name),
        !isWildcard || IPAddress(url.host) == nil && url.isSecure
      else { return nil }
      self.init(url, isWildcard: isWildcard)
    }

    init(_ url: StreamURL, isWildcard: Bool = false) {
      (name, self.isWildcard, port, isSecure) = (Self.canonical(url.host), isWildcard, url.port, url.isSecure)
    }

    /// A name's root is not part of it.
    private static func canonical(_ name: String) -> String {
      let name = name.lowercased()
      return name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    func stands(for host: Host) -> Bool {
      guard port == host.port, isSecure == host.isSecure else { return false }
      return isWildcard
        ? host.name.hasSuffix("." + name) : IPAddress(name).map { $0 == IPAddress(host.name) } ?? (name == host.name)
    }

    /// The addresses that the name itself says.
    var networks: [IPNetwork] {
      if let ip = IPAddress(name) { return [IPNetwork(ip.unmapped, prefixLength: ip.unmapped.family == .v4 ? 32 : 128)] }
      return name == "localhost" ? ["127.0.0.0/8", "::1"].compactMap { IPNetwork($0) } : []
    }
  }

  public var hosts: [Host] = []
  /// Where their names may lead beside public addresses.
  public var networks: [IPNetwork] = []
  public init() {}

  /// Nil: the configuration does not name the host, with this port and scheme.
  func target(_ url: StreamURL, _ format: StreamTarget.Format) -> StreamTarget? {
    let asked = Host(url)
    guard let host = hosts.first(where: { $0.stands(for: asked) }) else { return nil }
    return StreamTarget(url, format: format, reach: .named(networks + host.networks))
  }
}

/// What a stream's host may lead to. Who connects looks up the name once, and connects to the addresses that were found to be allowed.
public enum StreamReach: Sendable, Equatable {
  /// The configuration has the URL.
  case anywhere
  /// Public addresses, and those of these networks.
  case named([IPNetwork])

  public func allows(_ address: IPAddress) -> Bool {
    switch self {
    case .anywhere: true
    case .named(let networks): address.isPublic || networks.contains { $0.contains(address) }
    }
  }
}

extension Routing {
  /// A stream that a program asks for; nil: its host is not allowed.
  func streamTarget(_ url: StreamURL, _ format: StreamTarget.Format) -> StreamTarget? {
    var all = streamHosts
    for rule in inbound { if case .stream(let target) = rule.target { all.hosts.append(.init(target.url)) } }
    return all.target(url, format)
  }
}
