public import TrunklineBytes
import TrunklineSIP

/// The SIP user agent core of the gateway: transactions, dialogs and INVITE usages of RFC 3261, without sockets, clock or
/// randomness of its own.
///
/// Belongs to one thread. Every input is one call of `handle`; everything it causes is in `output` when the call returns.
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
  let random: RandomSource
  /// Marks our branches, so that a request of ours that loops back is recognised.
  let instanceKey: String

  // The time and the output of the current input; `output` is the caller's while `handle` runs.
  var now = Instant.zero
  var output = Output()

  var isDraining = false
  var overload: RefusalReason?
  var trunkRules: [String: TrunkRules] = [:] {
    didSet { accounts = TrunkAccounts(trunkRules) }
  }
  var accounts = TrunkAccounts()
  var counters = Statistics()
  var timers = DeadlineQueue<TimerKey>()
  var lastNumber: UInt64 = 0

  var servers: [UInt64: Box<ServerTransaction>] = [:]
  var serverIndex: [ServerKey: UInt64] = [:]
  var merges: [MergeKey: UInt64] = [:]
  var edges = EdgeRhythm()
  var clients: [UInt64: Box<ClientTransaction>] = [:]
  var clientIndex: [ClientKey: UInt64] = [:]
  var legs: [LegID: Box<Leg>] = [:]
  var dialogs: [DialogKey: LegID] = [:]
  var standalones: [RequestID: Standalone] = [:]
  /// Servers that accepted no connection for a large request, and until when that counts.
  var datagramOnly: [SocketAddress: Instant] = [:]
  var digestServer: DigestServer
  /// Legs of a process that died, which are still to be closed.
  var orphans: [(leg: OrphanedLeg, credentials: Credentials?)] = []

  public init(configuration: Configuration = Configuration(), random: RandomSource) {
    (self.configuration, self.random) = (configuration, random)
    digestServer = DigestServer(random: random, sharing: configuration.nonceSecret?.exposed)
    instanceKey = random.text(8, alphabet: identifierAlphabet)
  }

  /// When `handle(.timer)` is due; nil if nothing waits.
  public var nextDeadline: Instant? { timers.next }

  /// Counters since the start, and how full the tables are now.
  public var statistics: Statistics {
    var out = counters
    (out.serverTransactions, out.clientTransactions, out.legs) = (servers.count, clients.count, legs.count)
    return out
  }

  /// Handles one input and appends its effects to `output`. Malformed messages are answered or dropped, and counted; nothing
  /// traps or throws.
  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {
    self.now = now
    swap(&self.output, &output)
    switch input {
    case .received(let bytes, let flow, let trunk): received(bytes, flow, trunk)
    case .transportFailed(let flow, let peer, let wasOpen): transportFailed(flow, peer, wasOpen: wasOpen)
    case .timer: break
    case .command(let command): perform(command)
    case .draining(let isDraining): self.isDraining = isDraining
    case .overloaded(let reason): overload = reason
    case .orphaned(let legs): adopt(legs)
    // a removed trunk keeps its rules: its calls continue, and a peer that had to answer a challenge still has to
    case .rules(let rules): trunkRules.merge(rules) { $1 }
    case .moved(let own, let advertised): (configuration.own, configuration.advertised) = (own, advertised)
    case .moveLegs(let flows): moveLegs(flows)
    case .sharedClock(let offset): digestServer.clockOffsetMilliseconds = offset
    }
    fireTimers()
    swap(&self.output, &output)
  }

  private mutating func fireTimers() {
    while let key = timers.popDue(at: now) {
      switch key {
      case .server(let id, let timer): serverTimer(id, timer)
      case .client(let id, let timer): clientTimer(id, timer)
      case .leg(let id, let timer): legTimer(id, timer)
      case .orphans: closeOrphans()
      }
    }
  }

  private mutating func received(_ bytes: [UInt8], _ flow: Flow, _ trunk: String) {
    let message: Message
    do throws(ParseError) {
      message = try Message(bytes, onStream: flow.transport.isReliable)
    } catch {
      return counters.drop(.unreadable)
    }
    if message.isRequest {
      counters.requestsReceived[message.method ?? .other, default: 0] += 1
      received(request: message, flow, trunk)
    } else {
      received(response: message, flow, trunk)
    }
  }

  func rules(_ trunk: String) -> TrunkRules { trunkRules[trunk] ?? TrunkRules() }

  mutating func send(_ bytes: [UInt8], _ flow: Flow) { output.messages.append(Output.Message(bytes: bytes, flow: flow)) }
  mutating func emit(_ event: Event) { output.events.append(event) }

  mutating func nextNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }
}
