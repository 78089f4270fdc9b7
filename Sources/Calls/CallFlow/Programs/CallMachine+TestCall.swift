import AppSessions
import CallModel
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// Calls of apps to the gateway itself (docs/reference/protocol.md, Test calls): outgoing calls with all rules of the gate, whose
/// far side is `DirectDialogs`. No setting leads to a test call, and it reaches no trunk or user. It does not count in a user's
/// limits, and real calls have priority.
extension CallMachine {
  /// `call.start` to `TestCall.destination`, of a device with a session.
  mutating func startTest(
    _ request: StartRequest, of device: DevicePresence, account: String, _ step: inout Step
  ) throws(StartRefusal) {
    let user = request.user
    let trunk = Routing.testTrunk
    if calls.ids(of: user).contains(where: { calls[$0]?.isTest == true }) {
      throw StartRefusal(.tooMany, reason: .userLimit, trunk: trunk, detail: "a test call of this user is running")
    }
    let most = configuration.bounds.calls
    let running = trunkCapacity.calls(of: trunk)
    guard running < max(1, most / Limits.testCallsPart), calls.count < most - most / Limits.testCallsSpare else {
      throw StartRefusal(.overload, reason: .overload, trunk: trunk, detail: "test calls give way to others")
    }
    let offer = try readOffer(of: request.start, trunk: trunk)
    guard testQuota.consume(user, most: Limits.testCallsPerHour, at: step.now) else {
      throw StartRefusal(.tooMany, reason: .userRate, trunk: trunk, detail: "test calls")
    }
    let session = MediaSessionID(raw: makeNumber())
    let own = routing.callerNumber(of: user, wanted: nil, account: account) ?? user
    let parties = Call.Parties(
      from: Handle(number: own, name: nil), to: TestCall.destination, callerNumber: own, calledNumber: TestCall.handle,
      dialled: .testCall)
    let leg = TrunkLeg(.direct(makeNumber(), isOutbound: true), over: Routing.test, session: session)
    let call = Call(
      id: request.call, direction: .outgoing, session: session, users: Call.Users(user, account: account), parties: parties,
      trunkLeg: leg, at: step.now)
    // The cluster is not queried: the call is over before a device could look for it at another node.
    reserveMedia(StartingCall(call: call, offer: offer, device: device, request: request.token), &step)
  }

  /// Whether a test call accepts this message: its media, and its end.
  static func isOfTest(_ message: ClientMessage) -> Bool {
    switch message {
    case .callEnd, .mediaRestart, .callMute: true
    default: false
    }
  }

  static let notInTest = Failure(.badState, msg: "a test call has nothing but media")
}

extension Call {
  /// The device's audio was measured for long enough: the gateway hangs up, and the end contains the result.
  mutating func endTest(_ step: inout Step) {
    guard isTest, let connected = times[.connected], step.now - connected >= Limits.testCallLeast else { return }
    end(.remoteHangup, by: .gateway, detail: "test call", &step)
  }

  /// Ends a test call whose device lost its socket: the rest is of no use to a device that reconnects, and a reloaded page must
  /// not resume it.
  mutating func endLostTest(_ step: inout Step) -> Bool {
    guard isTest, isLive else { return false }
    end(.networkLost, by: .app, detail: "test call", &step)
    return true
  }

  /// For the end of a test call; nil: nothing was measured.
  var testResult: StreamStats? {
    guard isTest, let statistics = trunkLeg.statistics else { return nil }
    let received = statistics.fromApp
    let expected = received.packets &+ received.lost
    var out = StreamStats(
      rttMs: received.roundTripMilliseconds, jitterMs: received.jitterMilliseconds,
      loss: expected == 0 ? nil : Double(received.lost) / Double(expected), bytes: Int64(clamping: received.bytes),
      plc: Double(received.playout.concealedMilliseconds), codec: statistics.appEncoding?.name, mos: received.meanOpinionScore)
    out.audio = times[.firstAudioToTrunk] != nil
    return out
  }
}
