import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineClient
import TrunklineDTLS
import TrunklinePlatform
import TrunklineRTP
import TrunklineSIPDialogs

/// The calls of a load: all on the thread that is in `run`, before that on the thread that made it.
final class LoadLoop {
  enum Stage { case loggingIn, settingUp, held, ending, over }
  static let slots = 20
  static let loginLimit = Duration.seconds(15)
  static let setUpLimit = Duration.seconds(15)
  static let endingLimit = Duration.seconds(10)
  static let answerAfter = Duration.milliseconds(300)

  let options: LoadOptions
  let loop: EventLoop
  let random: RandomSource
  let report: (String) -> Void
  let speech: CodedSpeech
  let userAgent: CarrierUserAgent
  var webSockets: WebSocketPool?
  var calls: [LoadCall] = []
  var byLeg: [LegID: LoadCall] = [:]
  var stage = Stage.loggingIn
  var result = LoadResult()
  private var stepTimer: EventLoop.TimerID?
  private var stepDue = Instant.zero
  private var step = 0
  private var stageSince = Instant.zero
  private var begun = 0
  private var ownLateness = DelayCounts()
  private var network = 0
  private var isStopping = false
  private var refusals: [Double] = []
  private let onHold: (Bool) -> Void

  init(
    _ options: LoadOptions, random: RandomSource, onHold: @escaping (Bool) -> Void, report: @escaping (String) -> Void
  ) throws {
    (self.options, self.random, self.onHold, self.report) = (options, random, onHold, report)
    loop = try EventLoop(name: "load")
    speech = try CodedSpeech(relayed: options.relays, isWide: options.isWide)
    userAgent = try CarrierUserAgent(
      loop: loop, name: "load", udp: options.listen, gateway: options.gateway, setting: "the trunk's uri", random: random)
    userAgent.handler = { [unowned self] in handle($0) }
    try makeCalls()
    stepTimer = loop.addTimer("step") { [unowned self] in steps() }
  }

  private func makeCalls() throws {
    let identity = try DTLSIdentity()
    for (number, client) in options.clients.enumerated() {
      let isOutgoing = (number + 1) * options.outgoingPercent / 100 > number * options.outgoingPercent / 100
      // A sampled call begins with the first word, to show whether it is clipped; the others are spread over the sentence.
      let isSampled = number < options.sampled
      let call = LoadCall(
        number: number, isOutgoing: isOutgoing, isSampled: isSampled,
        trunk: try TrunkLoadLeg(
          address: options.listen.ip, position: isSampled ? 0 : number * 37, isWide: options.isWide, random: random),
        app: try AppLoadLeg(
          client, position: isSampled ? 0 : number * 53, address: options.mediaAddress, identity: identity,
          relays: options.relays, isWide: options.isWide, random: random))
      calls.append(call)
      try loop.register(call.trunk.socket.fd, .readable) { [unowned self, unowned call] _ in receiveTrunk(call) }
      try loop.register(call.trunk.control.fd, .readable) { [unowned call] _ in call.trunk.control.receiveAll() }
      try loop.register(call.app.socket.fd, .readable) { [unowned self, unowned call] _ in receiveApp(call) }
    }
    result.asked = calls.count
  }

  func begin() {
    stageSince = loop.now
    stepDue = loop.now
    if let stepTimer { loop.setTimer(stepTimer, at: stepDue) }
  }

  func stop() { isStopping = true }

  func run() -> LoadResult {
    loop.run()
    webSockets?.stop()
    userAgent.close()
    gather()
    return result
  }

  // MARK: time

  private func steps() {
    let now = MonotonicClock.now()
    while stepDue <= now {
      if stage == .held { ownLateness.count(now - stepDue) }
      for index in stride(from: step % Self.slots, to: calls.count, by: Self.slots) { advance(calls[index], now) }
      if !options.networks.isEmpty, stage == .held { for call in calls { call.trunk.release(at: now) } }
      step += 1
      stepDue = stepDue + .milliseconds(1)
    }
    advanceStage(now)
    if stage != .over, let stepTimer { loop.setTimer(stepTimer, at: stepDue) }
  }

  /// Advances one call by 20 ms.
  private func advance(_ call: LoadCall, _ now: Instant) {
    advanceApp(call, now)
    if call.trunk.speak(speech.telephoneFrames, at: now), call.isSampled { call.heardByApp.spoke(at: now) }
    if call.app.speak(speech.appFrames), call.isSampled { call.heardByTrunk.spoke(at: now) }
  }

  private func advanceStage(_ now: Instant) {
    let age = now - stageSince
    switch stage {
    case .loggingIn: logIn(age, now)
    case .settingUp: setUp(age, now)
    case .held:
      changeNetwork(age)
      if age >= options.hold || isStopping { enter(.ending, now) }
    case .ending: hangUp(age, now)
    case .over: break
    }
  }

  private func enter(_ next: Stage, _ now: Instant) {
    if stage == .held { result.heldSeconds = Double((now - stageSince).nanoseconds) / 1e9 }
    stage = next
    stageSince = now
    begun = 0
    if next == .held || next == .ending { onHold(next == .held) }
    if next == .ending { for call in calls { call.trunk.use(.init(), seed: 0) } }
    if next == .over { leave() }
  }

  private func logIn(_ age: Duration, _ now: Instant) {
    let due = min(calls.count, Int(Double(age.nanoseconds) / 1e9 * LoadGenerator.loginsPerSecond) + 1)
    while begun < due {
      give(calls[begun], .start)
      begun += 1
    }
    let online = calls.count { $0.app.isOnline }
    if online == calls.count || isStopping { return enter(.settingUp, now) }
    if age > Self.loginLimit {
      result.problems.append("\(calls.count - online) of \(calls.count) apps did not get a session within \(Self.loginLimit)")
      enter(.settingUp, now)
    }
  }

  private func setUp(_ age: Duration, _ now: Instant) {
    let due = min(calls.count, Int(Double(age.nanoseconds) / 1e9 * options.callsPerSecond) + 1)
    while begun < due, !isStopping {
      let call = calls[begun]
      begun += 1
      guard call.app.isOnline else { continue }
      call.phase = .settingUp
      call.startedAt = now
      if call.isOutgoing { dial(call) } else { invite(call) }
    }
    let pending = calls.count { $0.phase == .waiting || $0.phase == .settingUp }
    let limit = Duration.nanoseconds(Int64(Double(calls.count) / options.callsPerSecond * 1e9)) + Self.setUpLimit
    guard (begun == calls.count && pending == 0) || age > limit || isStopping else { return }
    if pending > 0 { result.problems.append("\(pending) calls were not connected in time") }
    report("\(calls.count { $0.phase == .up }) of \(calls.count) calls are up")
    enter(.held, now)
  }

  private func changeNetwork(_ age: Duration) {
    guard !options.networks.isEmpty else { return }
    let share = Double(age.nanoseconds) / Double(max(1, options.hold.nanoseconds))
    let wanted = min(options.networks.count, Int(share * Double(options.networks.count)) + 1)
    guard wanted != network else { return }
    network = wanted
    let state = options.networks[wanted - 1]
    report("network: \(state.lossPercent) % loss, \(state.jitterMilliseconds) ms jitter, \(state.reorderPercent) % reordered")
    for call in calls { call.trunk.use(state, seed: UInt64(call.number * 1000 + wanted)) }
  }

  private func hangUp(_ age: Duration, _ now: Instant) {
    let due = min(calls.count, Int(Double(age.nanoseconds) / 1e9 * options.callsPerSecond * 2) + 1)
    while begun < due {
      let call = calls[begun]
      begun += 1
      end(call)
    }
    let open = calls.count { $0.phase == .ending || $0.phase == .up }
    if begun == calls.count, open == 0 { return enter(.over, now) }
    if age > Self.endingLimit + .nanoseconds(Int64(Double(calls.count) / options.callsPerSecond * 1e9)) {
      result.problems.append("\(open) calls did not end on both sides")
      enter(.over, now)
    }
  }

  private func leave() {
    for call in calls {
      give(call, .finish)
      loop.unregister(call.trunk.socket.fd)
      loop.unregister(call.trunk.control.fd)
      loop.unregister(call.app.socket.fd)
    }
    loop.stop()
  }

  /// The gateway has refused the call for lack of capacity, instead of degrading others.
  func refuse(_ call: LoadCall) {
    guard call.phase == .settingUp else { return }
    call.phase = .over
    refusals.append(Double((loop.now - call.startedAt).nanoseconds) / 1e6)
  }

  // MARK: figures

  private func gather() {
    var (down, up, setUps) = (DelayCounts(), DelayCounts(), DelayCounts())
    for call in calls {
      let (trunk, app, sender) = (call.trunk, call.app, call.trunk.sender)
      result.trunkToApp.add(sent: sender.sent, withheld: sender.withheld, unsent: sender.unsent, counted: app.received)
      result.appToTrunk.add(sent: app.media.statistics.sentPackets, withheld: 0, unsent: app.unsent, counted: trunk.received)
      result.trunkToApp.refused += app.media.statistics.refusedPackets
      down.addAboveSmallest(app.received.delays)
      up.addAboveSmallest(trunk.received.delays)
      if let time = call.setUp {
        result.connected += 1
        result.calls.append(
          .init(
            id: call.app.call.map { "\($0.id)" } ?? "", sentByTrunk: sender.sent - sender.withheld,
            missedByApp: app.received.lost,
            sentByApp: app.media.statistics.sentPackets, missedByTrunk: trunk.received.lost))
        setUps.count(time)
      }
      if call.isSampled { score(call) }
    }
    result.trunkToApp.set(down)
    result.appToTrunk.set(up)
    let times = calls.compactMap(\.setUp).map { Double($0.nanoseconds) / 1e6 }.sorted()
    if !times.isEmpty { (result.setUpP50, result.setUpP99) = (times[times.count / 2], times[(times.count * 99) / 100]) }
    result.ownLatenessP50 = ownLateness.quantile(0.5)
    result.ownLatenessP99 = ownLateness.quantile(0.99)
    result.ownLatenessMax = ownLateness.quantile(1)
    refusals.sort()
    result.refused = refusals.count
    result.refusedAfterP99 = refusals.isEmpty ? 0 : refusals[refusals.count * 99 / 100]
    result.ownCPUSeconds = Double(MonotonicClock.threadCPU().nanoseconds) / 1e9
  }

  private func score(_ call: LoadCall) {
    let fromTrunk: AudioEncoding = options.relays ? .pcmu : .opus
    let fromApp: AudioEncoding = call.trunk.media?.codec ?? .pcmu
    for (direction, audio, said, encoding) in [
      ("trunk to app", call.heardByApp, speech.telephone, fromTrunk), ("app to trunk", call.heardByTrunk, speech.app, fromApp),
    ] where audio.expected(of: said.count) != nil {
      guard let found = audio.compare(with: said, encoding: encoding) else {
        result.problems.append("call \(call.number), \(direction): nothing was heard")
        continue
      }
      result.scores.append(
        .init(
          call: call.app.call.map { "\($0.id)" } ?? "", direction: direction, delayMilliseconds: found.delayMilliseconds,
          levelDecibels: found.levelDifferenceDecibels, heardShare: found.heardShare, similarity: found.similarity,
          clippedStartMilliseconds: found.clippedStartMilliseconds, heardSpeech: found.heardSpeech))
    }
  }
}

extension LoadResult.Direction {
  fileprivate mutating func add(sent: UInt64, withheld: UInt64, unsent: UInt64, counted: StreamCount) {
    self.sent += sent
    self.withheld += withheld
    self.unsent += unsent
    received += counted.received
    lost += counted.lost
    reordered += counted.reordered
  }

  fileprivate mutating func set(_ delays: DelayCounts) {
    latenessP50 = delays.quantile(0.5)
    latenessP99 = delays.quantile(0.99)
    latenessMax = delays.quantile(1)
  }
}
