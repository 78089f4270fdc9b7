import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

private let (first, second, third) = (PhoneRig.call(1), PhoneRig.call(2), PhoneRig.call(3))

/// Calls that hear each other: asked of the gateway by the system's action, and of the device by `listen` and `mix`.
@Suite struct PhoneGroupTests {
  private let able = CallCapabilities(hold: true, group: true)

  private func talk(_ rig: inout PhoneRig, _ call: Identifier, at: Int64) {
    rig.ring(call)
    rig.perform(.answer(call))
    rig.answer("call.answer")
    rig.receive(.callConnected(CallConnected(at: at, codec: "opus")), call)
    rig.receive(.callUpdate(CallUpdate(caps: able)), call)
  }

  /// The first on hold, the second talks.
  private func two() -> PhoneRig {
    var rig = PhoneRig()
    rig.logIn()
    talk(&rig, first, at: 1)
    rig.perform(.hold(first, true))
    rig.answer("call.hold", .ok(Success()))
    talk(&rig, second, at: 2)
    rig.give(.audioActivated)
    rig.give(.audioRuns(.running))
    return rig
  }

  private func listens(_ out: [PhoneMachine.Action]) -> [String] {
    out.compactMap {
      switch $0 {
      case .listen(let call): "listen \(call.map { "\($0.low)" } ?? "-")"
      case .mix(let others): "mix " + others.map { "\($0.low)" }.joined(separator: ",")
      default: nil
      }
    }
  }

  @Test func `merge: the action is done when the gateway has done so, the held call is resumed, and the device mixes (MID-2)`() {
    var rig = two()
    let asked = rig.give(.act(second, .group(first)))
    guard case .request(.group(second, first))? = asked.first else { return #expect(Bool(false), "\(asked)") }
    #expect(rig.perform(.group(second, first)).completions.isEmpty)
    #expect(rig.phone.info(of: first)?.group == nil)
    let done = rig.answer("call.group", .ok(Success()))
    #expect(done.completions == [true])
    #expect(rig.phone.info(of: first)?.group != nil && rig.phone.info(of: first)?.group == rig.phone.info(of: second)?.group)
    #expect(done.contains { if case .request(.hold(first, false)) = $0 { true } else { false } })
    rig.perform(.hold(first, false))
    #expect(listens(rig.answer("call.hold", .ok(Success()))) == ["mix 1"])
    // a further hold is the user's, of one of them
    rig.perform(.hold(second, true))
    #expect(listens(rig.answer("call.hold", .ok(Success()))) == ["listen 1", "mix "])
    rig.perform(.hold(second, false))
    #expect(listens(rig.answer("call.hold", .ok(Success()))) == ["listen 2", "mix 1"])
    // out again: one alone is no group
    rig.perform(.group(second, nil))
    let apart = rig.answer("call.group", .ok(Success()))
    #expect(listens(apart) == ["mix "])
    #expect(apart.contains { if case .request(.hold(first, true)) = $0 { true } else { false } }, "it hears hold audio")
    #expect(rig.phone.info(of: first)?.group == nil && rig.phone.info(of: second)?.group == nil)
  }

  @Test func `what cannot be merged fails at once, and asks nobody`() {
    var rig = two()
    for other in [second, third] { #expect(rig.perform(.group(second, other)).completions == [false]) }
    #expect(rig.perform(.group(second, nil)).completions == [false], "it is in none")
    rig.receive(.callUpdate(CallUpdate(caps: CallCapabilities(hold: true))), first)
    #expect(rig.perform(.group(second, first)).completions == [false] && rig.waiting("call.group") == 0)
    #expect(rig.give(.act(second, .group(first))).isEmpty)
  }

  @Test func `a refusal, an end and a reset complete the action once, and nobody is merged`() {
    var rig = two()
    rig.perform(.group(second, first))
    #expect(rig.answer("call.group", .err(Failure(.tooMany))).completions == [false])
    rig.perform(.group(second, first))
    #expect(rig.receive(.callEnded(CallOver(.remoteHangup)), second).completions == [false])
    #expect(rig.answer("call.group", .ok(Success())).completions.isEmpty && rig.phone.info(of: first)?.group == nil)
    rig = two()
    rig.perform(.group(second, first))
    #expect(rig.give(.reset).completions.isEmpty)
  }

  @Test func `an action that the system gave up is taken back at the gateway`() {
    var rig = two()
    rig.perform(.group(second, first))
    let action = rig.give(.timedOut(SystemActionID(4), .group(second, first)))
    #expect(action.completions.isEmpty && rig.waiting("call.group") == 2)
    if case .callGroup(let last)? = rig.requests.last?.message { #expect(last.with == nil) } else { #expect(Bool(false)) }
    for _ in 0..<2 { #expect(rig.answer("call.group", .ok(Success())).completions.isEmpty) }
    #expect(rig.phone.info(of: first)?.group == nil)
  }

  @Test func `a group is one of two calls; who is answered beside it holds all of it`() {
    var rig = two()
    rig.perform(.group(second, first))
    rig.answer("call.group", .ok(Success()))
    rig.perform(.hold(first, false))
    rig.answer("call.hold", .ok(Success()))
    rig.ring(third)
    #expect(rig.phone.info(of: third)?.state == .ringing, "not busy")
    let out = rig.give(.act(third, .answer))
    let held = out.compactMap { if case .request(.hold(let call, true)) = $0 { call } else { nil } }
    #expect(Set(held) == [first, second])
    rig.receive(.callEnded(CallOver(.remoteHangup)), first)
    #expect(rig.phone.info(of: second)?.group == nil)
  }

  @Test func `a new session's snapshot says which groups there are`() {
    var rig = two()
    func row(_ call: Identifier, _ group: [Identifier]?) -> CallSnapshot {
      var row = CallSnapshot(
        call: call, dir: .incoming, state: .connected, from: PhoneRig.handle, to: PhoneRig.handle, acct: "default", sdp: "v=0",
        gen: 1, at: 1, caps: able)
      row.group = group
      return row
    }
    rig.give(.socket(.socketClosed(1006)))
    _ = rig.wait(.seconds(1))
    _ = rig.welcome([row(first, [second]), row(second, [first])])
    #expect(rig.phone.info(of: first)?.group != nil && rig.phone.info(of: first)?.group == rig.phone.info(of: second)?.group)
  }

  @Test func `a translation is told to the gateway, of a connected call (MID-3)`() {
    var rig = two()
    rig.give(.act(second, .translate(CallTranslate(on: true, local: "en", remote: "de", engine: .default))))
    #expect(rig.waiting("call.translate") == 1)
    rig.ring(third)
    rig.give(.act(third, .translate(CallTranslate(on: true))))
    #expect(rig.waiting("call.translate") == 1)
  }
}
