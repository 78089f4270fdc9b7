public import TrunklineBytes

/// The hosts to which a program may send a call's audio (`POST /v1/calls/ID/stream`). The URL comes from a program and must not
/// make the gateway connect to its own network: the configuration names the hosts, and their names must resolve to public
/// addresses, or to networks that it names.
///
///     var hosts = StreamHosts()
///     hosts.hosts = [StreamHosts.Host("*.bots.example")!]
///     hosts.target(StreamURL("wss://a.bots.example/call")!, .mulaw)      // of public addresses
///     hosts.target(StreamURL("wss://a.bots.example:22/")!, .mulaw)       // nil: another port
public struct StreamHosts: Sendable, Equatable {
  /// A host with its port and scheme.
  public struct Host: Sendable, Hashable {
    /// In lower case, without `*.`.
    package let name: String
    package let isWildcard: Bool
    package let port: UInt16
    package let isSecure: Bool

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

    package init(_ url: StreamURL, isWildcard: Bool = false) {
      (name, self.isWildcard, port, isSecure) = (Self.canonical(url.host), isWildcard, url.port, url.isSecure)
    }

    /// In lower case, without the dot of the root at its end.
    private static func canonical(_ name: String) -> String {
      let name = name.lowercased()
      return name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    package func stands(for host: Host) -> Bool {
      guard port == host.port, isSecure == host.isSecure else { return false }
      return isWildcard
        ? host.name.hasSuffix("." + name) : IPAddress(name).map { $0 == IPAddress(host.name) } ?? (name == host.name)
    }

    /// The networks that the name itself states.
    package var networks: [IPNetwork] {
      if let ip = IPAddress(name) { return [IPNetwork(ip.unmapped, prefixLength: ip.unmapped.family == .v4 ? 32 : 128)] }
      return name == "localhost" ? ["127.0.0.0/8", "::1"].compactMap { IPNetwork($0) } : []
    }
  }

  public var hosts: [Host] = []
  /// Networks that the hosts' names may resolve to beside public addresses.
  public var networks: [IPNetwork] = []
  public init() {}

  /// Nil: the configuration does not name the host, with this port and scheme.
  package func target(_ url: StreamURL, _ format: StreamTarget.Format) -> StreamTarget? {
    let asked = Host(url)
    guard let host = hosts.first(where: { $0.stands(for: asked) }) else { return nil }
    return StreamTarget(url, format: format, reach: .named(networks + host.networks))
  }
}

/// The addresses that a stream's host may have. The name is resolved once, and only addresses of that answer that are allowed are
/// connected to.
public enum StreamReach: Sendable, Equatable {
  /// Any address: the URL is the configuration's.
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
  /// The target of a stream that a program requests; nil: its host is not allowed.
  package func streamTarget(_ url: StreamURL, _ format: StreamTarget.Format) -> StreamTarget? {
    var all = streamHosts
    for rule in inbound { if case .stream(let target) = rule.target { all.hosts.append(.init(target.url)) } }
    return all.target(url, format)
  }
}
