public import TrunklineBytes

/// The procedures of RFC 3263 §4.1 and §4.2 over the answers received so far.
///
/// | the URI has | queries |
/// |---|---|
/// | an address | nothing |
/// | a port | A and AAAA |
/// | `;transport=` | SRV of that service, then A and AAAA |
/// | neither | NAPTR; without any the SRV of our transports; then A and AAAA |
///
/// A failed answer counts as none: home routers and old firewalls do not forward each type. So that no step delays another, all
/// are queried at once until the first has an answer, as are the addresses of both families.
///
/// A pure function: it returns the queries whose answers it lacks, and is called again with them.
public struct ServerLocator {
  /// The transports that we can use.
  public let transports: Set<TransportProtocol>
  public let families: Set<IPAddress.Family>
  let lookUp: (DNSQuestion) -> DNSAnswer?

  /// Every query that the location depends on.
  public private(set) var used: Set<DNSQuestion> = []
  /// Those of `used` that have no answer yet, to be sent now.
  public private(set) var missing: [DNSQuestion] = []

  /// - Parameter lookUp: the answer to a query; nil while it may still arrive.
  public init(
    transports: Set<TransportProtocol>, families: Set<IPAddress.Family>, lookUp: @escaping (DNSQuestion) -> DNSAnswer?
  ) {
    (self.transports, self.families, self.lookUp) = (transports, families, lookUp)
  }

  /// The servers of `uri`, as far as the answers go. Costs one look-up per query.
  public mutating func locate(_ uri: ServerURI) -> TargetPlan {
    var plan = TargetPlan()
    if let address = uri.address {
      let transport = plainTransport(uri)
      plan.rows = [.init(transport: transport, addresses: [SocketAddress(address, uri.port ?? ServerURI.port(of: transport))])]
      return plan
    }
    if let port = uri.port {
      let transport = plainTransport(uri)
      plan.rows = [.init(transport: transport, addresses: addresses(uri.host, port))]
      return plan
    }
    if uri.transport == nil, let services = services(uri) {
      for (order, service) in services.enumerated() { addService(service.name, service.transport, order: order, to: &plan) }
      if !plan.rows.isEmpty || !missing.isEmpty { return plan }
    } else {
      for (order, transport) in candidates(uri).enumerated() {
        addService(Self.service(transport) + uri.host, transport, order: order, to: &plan)
      }
    }
    guard plan.rows.isEmpty, !plan.isRefused else { return plan }
    let transport = plainTransport(uri)
    plan.rows = [.init(transport: transport, addresses: addresses(uri.host, ServerURI.port(of: transport)))]
    return plan
  }

  /// Without NAPTR and SRV it is UDP, for a secure URI TLS (RFC 3263 §4.1).
  private func plainTransport(_ uri: ServerURI) -> TransportProtocol { uri.transport ?? (uri.isSecure ? .tls : .udp) }

  /// The services to query SRV for if NAPTR has no answer, best first.
  private func candidates(_ uri: ServerURI) -> [TransportProtocol] {
    if let transport = uri.transport { return [transport] }
    if uri.isSecure { return [.tls] }
    return [TransportProtocol.udp, .tcp, .tls].filter(transports.contains)
  }

  static func service(_ transport: TransportProtocol) -> String {
    switch transport {
    case .udp: "_sip._udp."
    case .tcp: "_sip._tcp."
    case .tls: "_sips._tcp."
    }
  }

  /// The NAPTR records that we can use, in their order; nil if there are none.
  private mutating func services(_ uri: ServerURI) -> [(name: String, transport: TransportProtocol)]? {
    guard case .naptr(let records, _)? = answer(DNSQuestion(uri.host, .naptr)) else { return nil }
    let sorted = records.prefix(LocationLimits.records).sorted { ($0.order, $0.preference) < ($1.order, $1.preference) }
    var out: [(String, TransportProtocol)] = []
    for record in sorted where record.flags.lowercased() == "s" && !record.replacement.isEmpty {
      let transport: TransportProtocol
      switch record.service.lowercased() {
      case "sip+d2u": transport = .udp
      case "sip+d2t": transport = .tcp
      case "sips+d2t": transport = .tls
      default: continue
      }
      guard transports.contains(transport), transport == .tls || !uri.isSecure else { continue }
      out.append((record.replacement, transport))
    }
    return out.isEmpty ? nil : out
  }

  private mutating func addService(_ name: String, _ transport: TransportProtocol, order: Int, to plan: inout TargetPlan) {
    guard case .srv(let records, _)? = answer(DNSQuestion(name, .srv)) else { return }
    // A single record with the target "." states that the service does not exist (RFC 2782).
    if records.count == 1, records.first?.target.isEmpty ?? true || records.first?.target == "." {
      plan.isRefused = true
      return
    }
    for record in records.prefix(LocationLimits.records) where !record.target.isEmpty && record.target != "." {
      let found = addresses(record.target, record.port)
      guard !found.isEmpty else { continue }
      plan.rows.append(
        .init(
          order: order, priority: Int(record.priority), weight: UInt64(record.weight), transport: transport, host: record.target,
          addresses: found))
    }
  }

  private mutating func addresses(_ host: String, _ port: UInt16) -> [SocketAddress] {
    if let literal = IPAddress(host) { return [SocketAddress(literal, port)] }
    var out: [SocketAddress] = []
    let before = missing.count
    for (family, kind) in [(IPAddress.Family.v4, DNSQuestion.Kind.a), (.v6, .aaaa)] where families.contains(family) {
      if case .addresses(let found, _)? = answer(DNSQuestion(host, kind)) {
        out += found.prefix(LocationLimits.records).map { SocketAddress($0, port) }
      }
    }
    if !out.isEmpty { missing.removeLast(missing.count - before) }
    return out
  }

  private mutating func answer(_ question: DNSQuestion) -> DNSAnswer? {
    guard used.contains(question) || used.count < LocationLimits.questions else { return DNSAnswer.none }
    let isNew = used.insert(question).inserted
    guard let answer = lookUp(question) else {
      if isNew { missing.append(question) }
      return nil
    }
    return answer
  }
}
