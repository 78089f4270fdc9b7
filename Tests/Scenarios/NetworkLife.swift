import CallFlow
import Synchronization
import Testing
import Trunking
import TrunklineBytes
import TrunklineSIP
import TrunklineSIPDialogs

/// The network under a world, and what fails in it: names that fail by type, name servers that are away, servers that are away,
/// connections that die without a notification, local errors, an address that disappears. It carries UDP and TCP to a carrier
/// with two servers, answers REGISTER, and counts the gateway's queries.
final class NetworkLife: Ground {
  /// Everything that may fail.
  enum Fault: Hashable {
    case fails(DNSQuestion.Kind), drops(DNSQuestion.Kind)
    case silentSends, toldSends
    case away(IPAddress)
    /// The machine has no address toward the outside.
    case noAddress
    /// REGISTER is answered with this.
    case refuses(Int)
  }

  /// A TCP connection with one server: the messages on their way, and its state.
  private final class Connection {
    let remote: SocketAddress
    var receivedAt: Instant
    /// A firewall has forgotten it: nothing gets through for good.
    var isForgotten = false
    var toCarrier: [[UInt8]] = []
    var toGateway: [[UInt8]] = []
    init(_ remote: SocketAddress, at now: Instant) { (self.remote, receivedAt) = (remote, now) }
  }

  static let first = World.carrierAddress
  static let second = SocketAddress(IPAddress(203, 0, 113, 8), 5_060)
  /// How long data may stay unacknowledged: `TCPSocket.Patience`.
  private static let patience = Duration.seconds(6)
  private static let delay = Duration.milliseconds(5)
  /// Three rounds of c-ares: 1.5, 3 and 6 s.
  private static let unanswered = Duration.milliseconds(10_500)

  private let world: World
  private let hasAddress: Flag
  private(set) var faults: [Fault: Instant] = [:]
  var timeToLive = Duration.seconds(60)
  private var ours: [SocketAddress: Connection] = [:]
  private var theirs: [SocketAddress: Connection] = [:]
  // what was asked, and when
  private(set) var asked: [DNSQuestion: [(at: Instant, answered: Instant, hasFailed: Bool)]] = [:]
  private(set) var registers: [Instant] = []
  private(set) var keptAlive: [Instant] = []
  /// How often the trunk machine reported each event, and connections broke under a request.
  private(set) var told: [String: Int] = [:]
  private var lastRegister = ""

  /// Read by the network's closure, which is sendable.
  final class Flag: Sendable {
    private let isSet = Mutex(true)
    var value: Bool {
      get { isSet.withLock { $0 } }
      set { isSet.withLock { $0 = newValue } }
    }
  }

  /// The network of a world that is not made yet.
  static func network(_ flag: Flag) -> TrunkMachine.Network {
    TrunkMachine.Network(transports: [.udp, .tcp], families: [.v4, .v6]) { transport, remote in
      flag.value && transport != .tls && remote.ip.family == .v4
        ? Flow(transport: transport, local: World.gatewayAddress, remote: remote) : nil
    }
  }

  init(_ world: World, _ flag: Flag) {
    (self.world, hasAddress) = (world, flag)
    world.ground = self
  }

  // MARK: faults

  func begin(_ fault: Fault, for duration: Duration) {
    let end = world.now + duration
    faults[fault] = max(faults[fault] ?? .zero, end)
    if fault == .noAddress { hasAddress.value = false }
    world.after(duration) { [self] in
      guard let until = faults[fault], until <= world.now else { return }
      faults[fault] = nil
      if fault == .noAddress { hasAddress.value = true }
      resume()
    }
  }

  /// Forgets every open connection.
  func forget() { for connection in [ours, theirs].flatMap(\.values) { connection.isForgotten = true } }

  private func isOn(_ fault: Fault) -> Bool { faults[fault] != nil }
  private func isCut(_ remote: IPAddress) -> Bool { isOn(.away(remote)) || isOn(.noAddress) }

  // MARK: the gateway's side

  func send(_ bytes: [UInt8], _ flow: Flow) {
    note(bytes)
    if flow.transport == .tcp { return stream(bytes, flow.remote) }
    if isOn(.silentSends) { return }
    if isOn(.toldSends) || isOn(.noAddress) { return world.after(.zero) { [world] in world.signal(.transportFailed(flow)) } }
    guard !isCut(flow.remote.ip) else { return }
    world.after(Self.delay) { [self] in arrive(bytes, .udp, flow.remote) }
  }

  private func note(_ bytes: [UInt8]) {
    guard bytes.starts(with: "REGISTER ".utf8), let message = try? Message(bytes) else { return }
    let sequence = message.field(.cseq).map { message.text($0.value) } ?? ""
    if sequence != lastRegister { registers.append(world.now) }
    lastRegister = sequence
  }

  /// A message has arrived at the carrier.
  private func arrive(_ bytes: [UInt8], _ transport: TransportProtocol, _ server: SocketAddress) {
    let flow = Flow(transport: transport, local: server, remote: World.gatewayAddress)
    guard bytes.starts(with: "REGISTER ".utf8), let message = try? Message(bytes) else {
      return world.carrier.receive(bytes, flow)
    }
    var code = 200
    for case .refuses(let refusal) in faults.keys { code = refusal }
    var lines = ["SIP/2.0 \(code) \(code == 200 ? "OK" : "No")"]
    for field in message.fields where [.via, .from, .callID, .cseq].contains(field.name) {
      lines.append("\(field.name.text): \(message.text(field.value))")
    }
    lines.append("To: \(message.field(.to).map { message.text($0.value) } ?? "");tag=registrar")
    lines += ["Expires: 300", "Content-Length: 0", "", ""]
    answer(Array(lines.joined(separator: "\r\n").utf8), flow)
  }

  // MARK: the carrier's side

  func answer(_ bytes: [UInt8], _ flow: Flow) {
    let server = flow.local
    if flow.transport == .tcp { return stream(back: bytes, server) }
    guard !isCut(server.ip) else { return }
    world.after(Self.delay) { [self] in deliver(bytes, .udp, server) }
  }

  private func deliver(_ bytes: [UInt8], _ transport: TransportProtocol, _ server: SocketAddress) {
    Invariants.look(at: bytes, fromGateway: false, world)
    let flow = Flow(transport: transport, local: World.gatewayAddress, remote: server)
    world.signal(.received(bytes, flow, trunk: transport == .udp ? "carrier" : "stream"))
  }

  // MARK: TCP

  private func isBlocked(_ connection: Connection) -> Bool {
    connection.isForgotten || isCut(connection.remote.ip) || isOn(.silentSends) || isOn(.toldSends)
  }

  private func stream(_ bytes: [UInt8], _ remote: SocketAddress) {
    let isNew = ours[remote] == nil
    let connection = ours[remote] ?? Connection(remote, at: world.now)
    ours[remote] = connection
    connection.toCarrier.append(bytes)
    if isNew, !isBlocked(connection) { theirs[remote] = connection }
    move(connection)
    watch(connection, isOurs: true, wasOpen: theirs[remote] === connection)
  }

  private func stream(back bytes: [UInt8], _ server: SocketAddress) {
    let isNew = theirs[server] == nil
    let connection = theirs[server] ?? Connection(server, at: world.now)
    theirs[server] = connection
    connection.toGateway.append(bytes)
    if isNew, !isBlocked(connection) { ours[server] = connection }
    move(connection)
    watch(connection, isOurs: false, wasOpen: ours[server] === connection)
  }

  private func move(_ connection: Connection) {
    guard !isBlocked(connection) else { return }
    let (out, back) = (connection.toCarrier, connection.toGateway)
    (connection.toCarrier, connection.toGateway) = ([], [])
    guard !out.isEmpty || !back.isEmpty else { return }
    if theirs[connection.remote] == nil { theirs[connection.remote] = connection }
    if ours[connection.remote] == nil { ours[connection.remote] = connection }
    world.after(Self.delay) { [self] in
      for bytes in out { arrive(bytes, .tcp, connection.remote) }
      if !back.isEmpty { connection.receivedAt = world.now }
      for bytes in back { deliver(bytes, .tcp, connection.remote) }
    }
  }

  /// Data that stays unacknowledged this long breaks the connection, for the end that sent it.
  private func watch(_ connection: Connection, isOurs: Bool, wasOpen: Bool) {
    guard isOurs ? !connection.toCarrier.isEmpty : !connection.toGateway.isEmpty else { return }
    world.after(Self.patience) { [self] in
      guard isOurs ? !connection.toCarrier.isEmpty : !connection.toGateway.isEmpty else { return }
      if isOurs {
        connection.toCarrier = []
        if ours[connection.remote] === connection { ours[connection.remote] = nil }
        let flow = Flow(transport: .tcp, local: World.gatewayAddress, remote: connection.remote)
        told["broken connection", default: 0] += 1
        world.signal(.transportFailed(flow, nil, wasOpen: wasOpen))
      } else {
        connection.toGateway = []
        if theirs[connection.remote] === connection { theirs[connection.remote] = nil }
        let flow = Flow(transport: .tcp, local: connection.remote, remote: World.gatewayAddress)
        world.carrier.handle(.transportFailed(flow, nil, wasOpen: wasOpen))
      }
    }
  }

  private func resume() {
    for connection in Array(ours.values) + theirs.values.filter({ ours[$0.remote] !== $0 }) { move(connection) }
  }

  func silent(_ flow: Flow, since: Instant) {
    guard flow.transport == .tcp, let connection = ours[flow.remote], connection.receivedAt <= since else { return }
    ours[flow.remote] = nil
    if !isBlocked(connection), theirs[flow.remote] === connection { theirs[flow.remote] = nil }
  }

  // MARK: names and keep-alives

  func lookUp(_ question: DNSQuestion) {
    let isLost = isOn(.drops(question.kind)) || isOn(.noAddress)
    let answer = isLost || isOn(.fails(question.kind)) ? DNSAnswer.failed : found(question)
    let after = isLost ? Self.unanswered : Self.delay
    asked[question, default: []].append((world.now, world.now + after, answer == .failed))
    world.after(after) { [world] in world.give(.trunking(.resolved(question, answer))) }
  }

  private func found(_ question: DNSQuestion) -> DNSAnswer {
    func srv(_ priority: UInt16, _ host: String) -> SRVRecord {
      SRVRecord(priority: priority, weight: 1, port: 5_060, target: host)
    }
    switch (question.name, question.kind) {
    case ("carrier.example", .naptr):
      return .naptr(
        [NAPTRRecord(order: 1, preference: 1, flags: "s", service: "SIP+D2U", replacement: "_sip._udp.carrier.example")],
        timeToLive: timeToLive)
    case ("_sip._udp.carrier.example", .srv):
      return .srv([srv(1, "a.carrier.example"), srv(2, "b.carrier.example")], timeToLive: timeToLive)
    case ("_sip._tcp.stream.example", .srv): return .srv([srv(1, "a.carrier.example")], timeToLive: timeToLive)
    case ("carrier.example", .a), ("a.carrier.example", .a), ("stream.example", .a):
      return .addresses([Self.first.ip], timeToLive: timeToLive)
    case ("b.carrier.example", .a): return .addresses([Self.second.ip], timeToLive: timeToLive)
    default: return .none
    }
  }

  func keepAlive(_ flow: Flow) { keptAlive.append(world.now) }

  func tell(_ news: TrunkNews) {
    switch news {
    case .notLocated: told["not located", default: 0] += 1
    case .unreached: told["unreached", default: 0] += 1
    case .registrationFailed: told["registration failed", default: 0] += 1
    case .probed(_, let isUp): told[isUp ? "probes answered" : "probes lost", default: 0] += 1
    case .breaker(_, let isOpen): told[isOpen ? "left alone" : "tried again", default: 0] += 1
    case .located, .registered, .formerContactKept, .serviceRouteRefused: break
    }
  }
}
