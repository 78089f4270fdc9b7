import Configuration
import Logging
import MediaThreads
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// The gateway's view of the network: the threads `network` and `names`, and the plan that follows from their results. Each
/// change makes a new plan; media, readiness, log and the caller of `start` get it on the thread `network`.
final class NetworkComponent: Sendable {
  /// How long the start waits for name servers, in milliseconds.
  private static let firstAnswers: Int32 = 2_000
  /// After this time an address whose port is in use is tried again.
  private static let retry = Duration.seconds(10)

  private struct State {
    var settings: Settings
    var machine: MachineAddresses
    var plan: NetworkPlan
    var refused: [String] = []
    var news: StateNews<News>
    var said: News
  }
  /// The content of the log's lines.
  private struct News: Equatable {
    var reason: String?
    var note: String?
    var media: [String]

    init(_ plan: NetworkPlan) { (reason, note, media) = (plan.reason, plan.note, plan.media.map { "\($0.advertise)" }) }
  }
  private let watch: NetworkWatch
  private let names: AdvertisedNames
  private let readiness: Readiness
  private let logger: Logger
  private let state: Mutex<State>
  private let changes = Counter()

  /// Reads the addresses for the first time. Without addresses there is also a plan, which waits for them.
  init(_ settings: Settings, readiness: Readiness, logger: Logger) throws(SystemError) {
    (self.readiness, self.logger) = (readiness, logger)
    let (watch, names) = (try NetworkWatch(), try AdvertisedNames())
    (self.watch, self.names) = (watch, names)
    try names.start(settings.advertisedQuestions, logger: logger) { watch.lookAgain() }
    names.wait(milliseconds: Self.firstAnswers)
    let machine = (try? MachineAddresses.look()) ?? MachineAddresses()
    let plan = settings.networkPlan(on: machine, NetworkQuestions(find: { names.address($0, $1) }))
    // a complete network at the start needs no line
    var said = News(plan)
    (said.reason, said.note) = (nil, nil)
    state = Mutex(State(settings: settings, machine: machine, plan: plan, news: StateNews(said: said), said: said))
    report(plan, refused: [])
    apply(plan, at: MonotonicClock.now())
  }

  /// The plan of the last check. Any thread.
  var plan: NetworkPlan { state.withLock { $0.plan } }

  /// `moved` is called on the thread `network` at its start and whenever addresses or routes may have changed.
  func start(media: MediaPlane, moved: @escaping @Sendable (NetworkPlan) -> Void) throws(SystemError) {
    try watch.start(logger: logger) { [self] machine in looked(machine, media, moved) }
  }

  /// Trunks of a new configuration. Any thread.
  func replace(_ settings: Settings) {
    state.withLock { $0.settings.trunks = settings.trunks }
    watch.lookAgain()
  }

  /// Any thread: `moved` is called again, within about a second.
  func lookAgain() { watch.lookAgain() }

  func stop() {
    watch.stop()
    names.stop()
  }

  var metrics: [MetricFamily] {
    watch.metrics + [
      .counter("trunkline_network_changes_total", help: "Changes of the addresses that this machine has.", changes)
    ]
  }

  private func looked(_ machine: MachineAddresses, _ media: MediaPlane, _ moved: (NetworkPlan) -> Void) -> Instant? {
    let now = MonotonicClock.now()
    let (settings, before, refusedBefore) = state.withLock { ($0.settings, $0.machine, $0.refused) }
    let plan = settings.networkPlan(on: machine, NetworkQuestions(find: { [names] in names.address($0, $1) }))
    if machine != before {
      changes.increment()
      names.lookAgain()
    }
    let refused = media.use(plan.media, localNetworks: plan.localNetworks).map { "\($0)" }
    if refused != refusedBefore {
      for why in refused { logger.error("media cannot use an address: it is tried again", metadata: ["why": "\(why)"]) }
    }
    state.withLock { ($0.machine, $0.plan, $0.refused) = (machine, plan, refused) }
    report(plan, refused: media.addresses.isEmpty ? refused : [])
    moved(plan)
    return .earliest(apply(plan, at: now), refused.isEmpty ? nil : now + Self.retry)
  }

  private func report(_ plan: NetworkPlan, refused: [String]) {
    let reason = plan.reason ?? refused.first
    readiness.set("addresses", ready: reason == nil, why: reason ?? "", note: plan.note)
  }

  /// - Returns: when a delayed line may be logged.
  @discardableResult private func apply(_ plan: NetworkPlan, at now: Instant) -> Instant? {
    let (said, line, due) = state.withLock { state in
      let (before, line) = (state.said, state.news.line(of: News(plan), at: now))
      if let line { state.said = line }
      return (before, line, state.news.due)
    }
    guard let line else { return due }
    let media = line.media.joined(separator: " ")
    if let reason = line.reason {
      guard reason != said.reason else { return due }
      logger.warning("no usable address: the gateway can receive no calls until it has one", metadata: ["why": "\(reason)"])
    } else if said.reason != nil {
      logger.notice("the machine has usable addresses again", metadata: ["media": "\(media)"])
    } else if line.note != said.note, let note = line.note {
      logger.warning("an address is missing: the others are used", metadata: ["why": "\(note)", "media": "\(media)"])
    } else {
      logger.notice("this machine's addresses have changed: calls from now on use these", metadata: ["media": "\(media)"])
    }
    return due
  }
}

extension Settings {
  /// The names that are advertised for media.
  var advertisedQuestions: [AdvertisedNames.Question] {
    media.addresses.flatMap { address -> [AdvertisedNames.Question] in
      switch address {
      case .automatic(let host?) where host.address == nil: [.v4, .v6].map { .init(name: host.host, family: $0) }
      case .fixed(let bind, let host?) where host.address == nil: [.init(name: host.host, family: bind.family)]
      default: []
      }
    }
  }
}
