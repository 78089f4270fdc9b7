public import TrunklineBytes
import TrunklineSIP

/// The SIP user agent core of the gateway: transactions, dialogs and INVITE usages of RFC 3261, without sockets, clock or
/// randomness of its own.
///
/// Belongs to one thread. Every input is one call of `handle`; everything it causes is in `output` when the call returns.
///
/// It has no state but that of its parts, each of which has its transition table: `ServerTransactions` and `ClientTransactions` (RFC
/// 3261 §17), `LegTable` (dialogs), `StandaloneRequests`, `OrphanQueue`, `DigestServer`, `TrunkDirectory`, `DatagramOnlyServers`,
/// `EdgeRhythm`, `Identifiers`. The extensions join them: what a transaction returns goes to its dialog, and what a dialog sends is
/// written (`RequestWriting`, `ServerTransactions`) and goes to a transaction. Docs: docs/design/sip.md, The user agent.
public struct UserAgent: Sendable {
  /// Settings that hold for the process.
  public struct Configuration: Sendable {
    /// Server and User-Agent header.
    public var product: String
    /// Seconds in Retry-After while draining or overloaded.
    public var retryAfterSeconds: Int
    /// Our own addresses.
    public var own: OwnAddresses
    /// The addresses at which peers reach us.
    public var advertised: AdvertisedAddresses
    /// A secret of 32 bytes or more that all nodes of a cluster have: each accepts the nonces of the others, by a shared clock
    /// (`Input.sharedClock`). Nil: a key of this process.
    public var nonceSecret: Redacted<[UInt8]>?

    public init(
      product: String = "Trunkline", retryAfterSeconds: Int = 30, own: OwnAddresses = OwnAddresses(),
      advertised: AdvertisedAddresses = AdvertisedAddresses(), nonceSecret: Redacted<[UInt8]>? = nil
    ) {
      (self.product, self.retryAfterSeconds, self.own, self.advertised) = (product, retryAfterSeconds, own, advertised)
      self.nonceSecret = nonceSecret
    }
  }

  private(set) var configuration: Configuration
  private(set) var isDraining = false
  private(set) var overload: RefusalReason?
  var step = Step()
  var identifiers: Identifiers
  private(set) var trunks = TrunkDirectory()

  var servers = ServerTransactions()
  var edges = EdgeRhythm()
  var clients = ClientTransactions()
  var legs = LegTable()
  var standalones = StandaloneRequests()
  var datagramOnly = DatagramOnlyServers()
  var digestServer: DigestServer
  var orphans = OrphanQueue()

  public init(configuration: Configuration = Configuration(), random: RandomSource) {
    self.configuration = configuration
    digestServer = DigestServer(random: random, sharing: configuration.nonceSecret?.exposed)
    identifiers = Identifiers(random)
  }

  /// When `handle(.timer)` is due; nil if nothing waits.
  public var nextDeadline: Instant? { step.timers.next }

  /// Counters since the start, and how full the tables are now.
  public var statistics: Statistics {
    var out = step.counters
    out.serverTransactions = servers.count
    out.clientTransactions = clients.count
    out.legs = legs.count
    return out
  }

  /// Handles one input and appends its effects to `output`. Malformed messages are answered or dropped, and counted; nothing
  /// traps or throws.
  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {
    step.now = now
    swap(&step.output, &output)
    switch input {
    case .received(let bytes, let flow, let trunk): received(bytes, over: flow, on: trunk)
    case .transportFailed(let flow, let peer, let wasOpen): transportFailed(flow, peer, wasOpen: wasOpen)
    case .timer: break
    case .command(let command): perform(command)
    case .draining(let isDraining): self.isDraining = isDraining
    case .overloaded(let reason): overload = reason
    case .orphaned(let legs): orphans.adopt(legs, &step)
    case .rules(let rules): trunks.set(rules)
    case .moved(let own, let advertised): (configuration.own, configuration.advertised) = (own, advertised)
    case .moveLegs(let flows): moveLegs(flows)
    case .sharedClock(let offset): digestServer.setClock(offsetMilliseconds: offset)
    }
    fireTimers()
    swap(&step.output, &output)
  }

  private mutating func fireTimers() {
    while let key = step.timers.popDue(at: step.now) {
      switch key {
      case .server(let id, let timer): servers.fired(id, timer, &step)
      case .client(let id, let timer): if let failure = clients.fired(id, timer, &step) { clientFailed(failure) }
      case .leg(let id, let timer): legTimer(id, timer)
      case .orphans: closeOrphans()
      }
    }
  }

  private mutating func received(_ bytes: [UInt8], over flow: Flow, on trunk: String) {
    let message: Message
    do throws(ParseError) {
      message = try Message(bytes, onStream: flow.transport.isReliable)
    } catch {
      return step.counters.drop(.unreadable)
    }
    if message.isRequest {
      step.counters.requestsReceived[message.method ?? .other, default: 0] += 1
      received(request: message, flow, trunk)
    } else {
      received(response: message, flow, trunk)
    }
  }

  func rules(_ trunk: String) -> TrunkRules { trunks.rules(of: trunk) }
}
