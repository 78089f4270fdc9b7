import AppSessions
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// One thing that happens to a call: the events of the INV row, for one of its devices or for all.
enum Step: Hashable {
  /// The push service accepts the push and the device gets it; the service does not answer and the device gets it, or does not.
  case push(Int)
  case pushUnsure(Int)
  case pushLost(Int)
  /// The device connects if it has not, and rings and prepares.
  case offer(Int)
  case tap(Int)
  case ready(Int)
  case fail(Int)
  case unavailable(Int)
  case reject(Int)
  case rejectHTTP(Int)
  /// The socket breaks; the app closes it for good; the device reconnects after either.
  case drop(Int)
  case quit(Int)
  case back(Int)
  case cancel, timeout
  /// Of the number that the call is diverted to: 180, 183 with media, 200, 486, BYE.
  case rings, talks, answers, refuses, hangsUp
  /// 503 from the number; a hold by it, and by the caller; an app's hold that meets the caller's; the caller hangs up as the
  /// number answers.
  case fails, numberHolds, callerHolds, glare, crosses
  /// The caller's REFER to the number.
  case refers
  /// The recording ends.
  case played
  /// The webhook names alice, or no user; a better name of the caller arrives, from the webhook or in another way.
  case routed, unrouted, named
}

extension Play {
  /// Without the summaries, which are sorted copies: read several times a step.
  var isOver: Bool { call.map { core.machine.calls[$0] == nil } ?? false }

  /// Whether the step would do anything at all: one that would not is left out, since the order without it is played too.
  func isPossible(_ step: Step) -> Bool {
    switch step {
    case .push(let i), .pushUnsure(let i), .pushLost(let i):
      pushes.contains { $0.key.device == devices[i].name && !$0.isReported }
    case .offer(let i): !devices[i].hasRung && !devices[i].isDropped && (devices[i].connection == nil || devices[i].knows)
    case .tap(let i): devices[i].connection != nil && devices[i].knows && !devices[i].hasTapped
    case .ready(let i): devices[i].leg != nil && !devices[i].isReady && devices[i].connection != nil
    case .fail(let i): devices[i].connection != nil && devices[i].knows && !devices[i].hasFailed
    case .unavailable(let i), .reject(let i): devices[i].connection != nil && devices[i].knows && devices[i].terminals.isEmpty
    case .rejectHTTP(let i): devices[i].wake != nil && devices[i].terminals.isEmpty
    case .drop(let i), .quit(let i): devices[i].connection != nil
    case .back(let i): devices[i].isDropped
    case .cancel: finals == 0 || isAnswered && !trunk.contains("BYE") && !isOver
    case .timeout: !isOver
    case .rings: number?.phase == .invited && number?.hasRung == false
    case .talks, .answers, .refuses, .fails: number?.phase == .invited
    case .hangsUp, .numberHolds: number?.phase == .answered
    case .callerHolds: isTalking
    case .glare: isTalking && winner != nil
    case .crosses: number?.phase == .invited && !trunk.contains("BYE")
    case .refers: isTalking && !isReferred && number == nil
    case .played: !playing.isEmpty
    case .routed, .unrouted: isAsked
    case .named: !isOver
    }
  }

  mutating func apply(_ step: Step, resuming: Bool) {
    guard let call else { return }
    switch step {
    case .push(let i): report(i, .accepted, arrives: true)
    case .pushUnsure(let i): report(i, .failed, arrives: true)
    case .pushLost(let i): report(i, .failed, arrives: false)
    case .offer(let i):
      if devices[i].connection == nil { come(i) }
      guard devices[i].knows else { return }
      devices[i].hasRung = true
      send(.callRinging(CallRinging()), i, call: call)
      send(.callPrepare(CallPrepare(sdp: sdp(i))), i, call: call)
    case .tap(let i):
      devices[i].hasTapped = true
      send(.callAnswer(CallAnswer(sdp: sdp(i))), i, call: call)
    case .ready(let i):
      guard let session, let (leg, epoch) = devices[i].leg else { return }
      devices[i].isReady = true
      feed(.media(.nominated(session, leg, generation: epoch, remote: SocketAddress(IPAddress(192, 0, 2, 7), 5_000))))
      feed(.media(.keysInstalled(session, leg, generation: epoch, profile: "AEAD_AES_128_GCM")))
      send(.mediaReady(MediaReady(gen: 1)), i, call: call)
    case .fail(let i):
      devices[i].hasFailed = true
      send(.mediaFail(MediaFail(gen: 1, stage: .ice)), i, call: call)
    case .unavailable(let i):
      let isUndecided = machine.summaries.contains { $0.call == call && ($0.state == .parked || $0.state == .ringing) }
      send(.callUnavailable(CallUnavailable(why: .dnd)), i, call: call)
      // its receipt is the terminal message, if there was a call to leave; later it means nothing
      if isUndecided, devices[i].terminals.isEmpty { devices[i].terminals.append("unavailable") }
    case .reject(let i): send(.callReject(CallReject(scope: .device)), i, call: call)
    case .rejectHTTP(let i):
      let before = hasHTTPAnswer.count
      tell(
        .httpReject(HTTPRequestID(UInt64(before)), call: call, bearer: devices[i].wake, body: Array(#"{"scope":"device"}"#.utf8)))
      if hasHTTPAnswer.last == 200, devices[i].terminals.isEmpty { devices[i].terminals.append("ok reject") }
    case .drop(let i):
      drop(i)
      devices[i].isDropped = true
    case .quit(let i):
      drop(i, .normal)
      devices[i].isDropped = true
      devices[i].sid = nil
    case .back(let i):
      devices[i].isDropped = false
      if resuming { connect(i, resuming: true) }
      if devices[i].connection == nil || !resuming { comeBack(i) }
    case .cancel:
      trunkDoes(finals == 0 ? .cancel(leg, nil) : .bye(leg, nil))
    case .timeout: pass(.seconds(46))
    case .rings, .talks, .answers, .refuses, .fails, .numberHolds, .callerHolds, .glare, .crosses, .refers, .hangsUp, .played:
      applyToNumber(step)
    case .routed, .unrouted:
      isAsked = false
      if step == .routed { callerName = Self.lateName }
      feed(.routed(call, step == .routed ? RouteAnswer(users: ["alice"], name: Self.lateName) : nil))
    case .named:
      callerName = Self.lateName
      feed(.callerKnown(call, Handle(k: .phone, h: "+15550000042", n: Self.lateName)))
    }
  }

  /// Steps of the number that the call is diverted or transferred to.
  private mutating func applyToNumber(_ step: Step) {
    switch step {
    case .rings: numberRings(early: false)
    case .talks: numberRings(early: true)
    case .answers: numberAnswers()
    case .refuses: numberRefuses(486)
    case .fails: numberRefuses(503)
    case .numberHolds: if let leg = number?.leg { trunkDoes(.modify(leg)) }
    case .callerHolds: trunkDoes(.modify(leg))
    case .glare: glare()
    case .crosses: hangUpCrossesAnswer()
    case .refers: refer()
    case .hangsUp: numberHangsUp()
    case .played: recordingEnds()
    default: break
    }
  }

  static let lateName = "Carol of Accounts"

  private mutating func report(_ i: Int, _ outcome: PushReport.Outcome, arrives: Bool) {
    guard let index = pushes.firstIndex(where: { $0.key.device == devices[i].name && !$0.isReported }) else { return }
    pushes[index].isReported = true
    let push = pushes[index]
    if arrives {
      accepted[push.key, default: 0] += 1
      devices[i].wake = push.content.wake.exposed
      if !devices[i].knows { devices[i].shownName = push.content.name }
      devices[i].knows = true
    }
    feed(
      .pushed(
        PushReport(
          key: push.key, target: push.target, outcome: outcome, reason: "", isFault: false, attempts: 2,
          elapsed: .milliseconds(40)))
    )
  }

  /// Connects by the wake token while it is good, else by login.
  private mutating func come(_ i: Int) {
    connect(i)
    guard devices[i].connection == nil else { return }
    devices[i].wake = nil
    connect(i)
  }

  /// A new session: the snapshot replaces the earlier state, and what the gateway may lack is sent again.
  private mutating func comeBack(_ i: Int) {
    let was = devices[i]
    come(i)
    guard let call, devices[i].terminals.isEmpty, devices[i].connection != nil, was.knows else { return }
    if was.hasRung { send(.callRinging(CallRinging()), i, call: call) }
    if was.hasTapped, !was.hasWon { send(.callAnswer(CallAnswer(sdp: sdp(i))), i, call: call) }
  }

  // MARK: the end

  /// Lets everything run out, reconnects every device once, and checks the invariants.
  func broken() -> [String] {
    var problems = misnamed()
    var play = self
    play.runOut()
    func expect(_ holds: Bool, _ text: @autoclosure () -> String) { if !holds { problems.append(text()) } }
    expect(play.isOver, "the call is not over")
    expect(play.strays.isEmpty, "\(play.strays)")
    expect(play.finals == 1, "final responses: \(play.trunk)")
    expect(play.records.count == 1, "\(play.records.count) records")
    expect(!play.hasTwoWinners && play.devices.count(where: \.wasConnected) <= 1, "two winners")
    expect(play.accepted.values.allSatisfy { $0 == 1 }, "a device was pushed to twice")
    expect(Set(play.pushes.map(\.key.device)).count == play.pushes.count, "a second push was asked for")
    expect(
      play.mediaAfterEnd == 0 && play.closes.values.allSatisfy { $0 == 1 }, "media after the end, or not closed once: \(closes)")
    for device in play.devices {
      expect(
        device.knows ? device.terminals.count == 1 : device.terminals.count <= 1,
        "\(device.name): \(device.terminals), knows \(device.knows)")
      expect(!device.wasConnected || device.hasWon, "\(device.name) is connected and did not win")
      expect(device.late.isEmpty, "\(device.name) heard \(device.late) behind \(device.terminals)")
    }
    expect(play.machine.statistics.answeredWithoutMedia == 0, "answered without media")
    let elsewhere = play.records.first?.diversions?.contains { $0.number != nil || $0.recording != nil } == true
    expect(!play.isAnswered || play.records.first?.device != nil || elsewhere, "answered, and the record names nobody")
    expect(!elsewhere || play.records.first?.device == nil, "a device has a call that went elsewhere")
    expect(play.number == nil || play.number?.phase == .over, "the leg to the number is left: \(play.trunk)")
    expect(play.numbersCalled <= 1 && !play.trunk.contains { $0.contains("that is") }, "legs: \(play.trunk)")
    for index in play.devices.indices { play.drop(index, .normal) }
    play.pass(.seconds(3_800))
    expect(play.nextDeadline == nil, "a timer is left")
    let sip = play.core.userAgent.statistics
    expect(sip.legs == 0 && sip.serverTransactions == 0 && sip.clientTransactions == 0, "SIP state is left: \(sip)")
    expect(
      play.machine.statistics.tombstones == 0 && play.machine.statistics.states.values.allSatisfy { $0 == 0 }, "state is left")
    return problems
  }

  /// A device that has the call or rings for it shows the name that the gateway knows (INC-12).
  private func misnamed() -> [String] {
    isOver
      ? []
      : devices.filter { $0.connection != nil && $0.knows && $0.terminals.isEmpty && $0.shownName != callerName }.map {
        "\($0.name) shows \($0.shownName ?? "nothing") for \(callerName)"
      }
  }

  private mutating func runOut() {
    // a ring window each for alice, for bob or the number, and for what is left of the first
    var windows = 0
    while windows < 40, !isOver, !isAnswered {
      pass(.seconds(5))
      windows += 1
    }
    // a call with the number continues
    if number?.phase == .answered, !isOver {
      pass(.seconds(100))
      if isOver { strays.append("the call to the number ended by itself") }
    }
    if isReferred, number?.phase == .invited { numberRefuses(486) }
    if isPossible(.cancel) { apply(.cancel, resuming: false) }
    // after a transfer the number has the call
    if isReferred, isPossible(.hangsUp) { numberHangsUp() }
    pass(.seconds(1))
    for index in devices.indices where devices[index].connection == nil {
      devices[index].isDropped = false
      come(index)
    }
    pass(.seconds(1))
  }
}
