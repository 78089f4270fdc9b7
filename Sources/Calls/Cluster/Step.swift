import TrunklineBytes

/// One step of the machine: its time, and the outputs that its parts append to: actions, requests to the shared store, deadlines,
/// counters. The machine's own are moved in and out, so a part never sees the machine.
struct Step {
  let now: Instant
  let random: RandomSource
  var actions: [ClusterMachine.Action] = []
  var requests = RequestTable()
  var timers = DeadlineQueue<ClusterMachine.Timer>()
  var statistics = ClusterStatistics()

  init(now: Instant, random: RandomSource) { (self.now, self.random) = (now, random) }

  /// False: the request was not sent, and no reply follows.
  @discardableResult
  mutating func send(_ request: SharedStoreRequest, _ purpose: ClusterMachine.Purpose) -> Bool {
    guard let id = requests.add(purpose, at: now) else { return false }
    actions.append(.sharedStore(id, request))
    return true
  }

  /// A random duration below `most`: it spreads actions in time, nothing else.
  func jitter(_ most: Duration) -> Duration {
    .nanoseconds(Int64(random.next() % UInt64(max(1, most.nanoseconds))))
  }
}
