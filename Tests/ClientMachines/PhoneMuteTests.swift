import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

private let call = PhoneRig.call(1)

/// A session that was not resumed says in its snapshot whether the gateway holds the call muted: a program may have done it meanwhile.
@Suite struct PhoneMuteTests {
  private func talking() -> PhoneRig {
    var rig = PhoneRig()
    rig.logIn()
    rig.ring(call)
    rig.perform(.answer(call))
    rig.answer("call.answer")
    rig.receive(.callConnected(CallConnected(at: 1, codec: "opus")), call)
    return rig
  }

  private func again(_ rig: inout PhoneRig, _ muted: Bool?, state: CallSnapshot.State = .connected) -> [Bool] {
    var row = CallSnapshot(
      call: call, dir: .incoming, state: state, from: PhoneRig.handle, to: PhoneRig.handle, acct: "default", sdp: "v=0", gen: 1,
      at: 1)
    row.muted = muted
    rig.give(.pathChanged)
    return rig.welcome([row]).compactMap { if case .request(.mute(call, let on)) = $0 { on } else { nil } }
  }

  @Test func `the system is asked to show it, and what is shown already asks nobody`() {
    var rig = talking()
    #expect(again(&rig, true) == [true])
    rig.perform(.mute(call, true))
    #expect(rig.phone.info(of: call)?.isMuted == true)
    _ = rig.wait(.milliseconds(400))
    rig.answer("call.mute", .ok(Success()))
    #expect(again(&rig, true) == [])
    #expect(again(&rig, nil) == [], "an older gateway says nothing of it")
    #expect(again(&rig, false) == [false])
  }

  @Test func `what the device has yet to say, or has no answer to, is newer`() {
    var rig = talking()
    rig.perform(.mute(call, true))
    #expect(again(&rig, false) == [], "a burst of mutes is not over")
    _ = rig.wait(.milliseconds(400))
    #expect(rig.waiting("call.mute") == 1 && again(&rig, false) == [], "it goes again, behind the snapshot")
    rig.answer("call.mute", .ok(Success()))
    #expect(again(&rig, false) == [false])
  }

  @Test func `before the call is connected it says nothing of what the device will send`() {
    var rig = PhoneRig()
    rig.logIn()
    rig.ring(call)
    rig.perform(.answer(call))
    rig.perform(.mute(call, true))
    #expect(again(&rig, false, state: .answering) == [])
    #expect(rig.phone.info(of: call)?.isMuted == true)
  }
}
