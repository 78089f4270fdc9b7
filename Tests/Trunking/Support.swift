import TrunklineBytes
import TrunklineSIPDialogs

@testable import Trunking

extension Instant {
  static func s(_ seconds: Int) -> Instant { Instant(nanoseconds: Int64(seconds) * 1_000_000_000) }
}

/// A name server of the test: what it knows, and what it was asked.
struct Zone {
  var naptr: [String: [NAPTRRecord]] = [:]
  var srv: [String: [SRVRecord]] = [:]
  var a: [String: [String]] = [:]
  var aaaa: [String: [String]] = [:]
  var timeToLive = Duration.seconds(60)
  var isDead = false
  /// Types for which the name server fails (SERVFAIL), and those that it does not answer.
  var failing: Set<DNSQuestion.Kind> = []
  var dropped: Set<DNSQuestion.Kind> = []

  func answer(_ question: DNSQuestion) -> DNSAnswer {
    if isDead || failing.contains(question.kind) { return .failed }
    switch question.kind {
    case .naptr: return naptr[question.name].map { .naptr($0, timeToLive: timeToLive) } ?? .none
    case .srv: return srv[question.name].map { .srv($0, timeToLive: timeToLive) } ?? .none
    case .a: return a[question.name].map { .addresses($0.compactMap { IPAddress($0) }, timeToLive: timeToLive) } ?? .none
    case .aaaa: return aaaa[question.name].map { .addresses($0.compactMap { IPAddress($0) }, timeToLive: timeToLive) } ?? .none
    }
  }
}

/// A machine, its name server and a clock.
struct World {
  var machine: TrunkMachine
  var zone: Zone
  var now = Instant.s(1)
  var asked: [DNSQuestion] = []
  var requests: [(id: RequestID, request: OutboundRequest)] = []
  var news: [TrunkNews] = []
  var keptAlive: [(at: Instant, flow: Flow)] = []

  init(
    _ settings: [TrunkSettings], _ zone: Zone = Zone(), seed: UInt64 = 1,
    transports: Set<TransportProtocol> = [.udp, .tcp, .tls],
    families: Set<IPAddress.Family> = [.v4, .v6], sharesDuties: Bool = false,
    local: @escaping @Sendable () -> SocketAddress? = { SocketAddress("198.51.100.9:5060") }
  ) {
    let network = TrunkMachine.Network(transports: transports, families: families) { transport, remote in
      transports.contains(transport) && families.contains(remote.ip.family)
        ? local().map { Flow(transport: transport, local: $0, remote: remote) } : nil
    }
    machine = TrunkMachine(network: network, random: .seeded(seed), sharesDuties: sharesDuties)
    self.zone = zone
    feed(.configure(settings))
  }

  /// Feeds an input; questions are answered until there are none.
  mutating func feed(_ input: TrunkMachine.Input) {
    var inputs = [input]
    while !inputs.isEmpty {
      var output = TrunkMachine.Output()
      machine.handle(inputs.removeFirst(), at: now, into: &output)
      asked += output.questions
      requests += output.requests
      news += output.news
      keptAlive += output.keepAlives.map { (now, $0) }
      inputs += output.questions.filter { !zone.dropped.contains($0.kind) }.map { .resolved($0, zone.answer($0)) }
    }
  }

  mutating func advance(_ duration: Duration) {
    let end = now + duration
    while let due = machine.nextDeadline, due <= end {
      now = max(now, due)
      feed(.timer)
    }
    now = end
  }

  /// The servers of one call, in order.
  func targets(_ name: String = "carrier") -> [String] {
    guard let peer = machine.peer(name, at: now) else { return [] }
    return ([peer.target] + peer.further).map { "\($0.flow.transport) \($0.flow.remote)" }
  }

  mutating func answer(
    _ code: Int, expires: Int? = nil, minimum: Int? = nil, retry: Int? = nil, byTransport: Bool = false, contact: String? = nil,
    serviceRoutes: [String]? = []
  ) {
    guard let (id, request) = requests.last else { return }
    var outcome = RequestOutcome(code: code, sequence: request.sequence)
    (outcome.expires, outcome.minimumExpires, outcome.retryAfter, outcome.byTransport) = (expires, minimum, retry, byTransport)
    (outcome.contact, outcome.serviceRoutes) = (contact, serviceRoutes)
    feed(.requestAnswered(id, outcome))
  }
}

func trunk(
  _ host: String = "carrier.example", port: UInt16? = nil, transport: TransportProtocol? = nil, isSecure: Bool = false,
  registration: TrunkSettings.Registration? = nil, probe: TrunkSettings.Probe? = nil
) -> TrunkSettings {
  TrunkSettings(
    name: "carrier", domain: host, server: ServerURI(host: host, port: port, transport: transport, isSecure: isSecure),
    registration: registration, probe: probe)
}
