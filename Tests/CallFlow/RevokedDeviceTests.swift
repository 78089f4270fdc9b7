import AppSessions
import Devices
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

/// An operator revokes a device at any moment between its `hello` and its hang-up: its requests are refused with `revoked`, and
/// the call continues as it would have.
@Suite struct RevokedDeviceTests {
  private let phone = Surroundings.phone
  private let tablet = Surroundings.tablet

  private func revoke(_ world: Surroundings, _ key: DeviceKey) {
    #expect(world.operate { .devices(.revoke(user: key.user, device: key.device, $0)) } == .done)
  }
  private func code(_ answer: RequestAnswer?) -> ErrorCode? { if case .err(let failure)? = answer { failure.code } else { nil } }

  @Test func `a revoked device is not welcomed, and what it asks all the same makes no call`() {
    let world = Surroundings()
    world.register()
    revoke(world, phone)
    world.connect(phone)
    #expect(world.turnedAway == [SessionID("phone")] && world.welcomes[SessionID("phone")] == nil)
    let call = CallID(high: 0xc, low: 1)
    for session in ["phone", "second"] {
      let start = CallStart(to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP())
      #expect(code(world.request(phone, .callStart(start), call: call, on: session)) == .revoked)
    }
    #expect(world.invites.isEmpty && world.machine.summaries.isEmpty && world.records.isEmpty)
  }

  @Test func `its old token ends no other phone's ringing, and gets no directory`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    revoke(world, phone)
    for scope in [CallReject.Scope.device, .all] {
      #expect(code(world.reject(phone, call, CallReject(scope: scope))) == .revoked)
      #expect(code(world.request(phone, .callReject(CallReject(scope: scope)), call: call)) == .revoked)
    }
    #expect(world.received[tablet] == ["call.offer"] && world.machine.summaries.count == 1)
    world.feed(.app(.httpLogin(HTTPRequestID(900), phone)))
    world.feed(.app(.httpLogin(HTTPRequestID(901), tablet)))
    #expect(code(world.httpAnswers[HTTPRequestID(900)]) == .revoked && world.httpAnswers[HTTPRequestID(901)] == .ok)
  }

  /// The state of the call when the operator revokes the device.
  enum Moment: Int, CaseIterable { case offered, ringing, prepared, warm, answered, held }

  @Test(arguments: Moment.allCases)
  func `revoked in an incoming call: before the tap it cannot have it, behind it nothing changes`(
    _ moment: Moment
  ) throws {
    let world = Surroundings()
    for device in [phone, tablet] { world.connect(device) }
    let leg = world.invite()
    let call = try #require(world.offeredCall(phone))
    let steps: [() -> Void] = [
      {}, { world.notify(self.phone, .callRinging(CallRinging()), call: call) }, { _ = world.prepare(self.phone, call) },
      { world.warm(self.phone, call) }, { world.request(self.phone, .callAnswer(CallAnswer()), call: call) },
      { world.request(self.phone, .callHold(CallHold(on: true)), call: call) },
    ]
    for step in steps.prefix(moment.rawValue + 1) { step() }
    revoke(world, phone)
    #expect(world.revoked == [phone])
    if moment.rawValue < Moment.answered.rawValue {
      for message: ClientMessage in [
        .callPrepare(CallPrepare(sdp: Surroundings.appSDP(), gen: 1)), .callAnswer(CallAnswer()), .callReject(CallReject()),
        .callEnd(CallEnd()),
      ] {
        #expect(code(world.request(phone, message, call: call)) == .revoked, "\(message.type)")
      }
      world.notify(phone, .callUnavailable(CallUnavailable(why: .busyOther)), call: call)
      #expect(!world.trunkReceived.contains("200") && world.machine.summaries.count == 1, "the call is untouched")
      world.warm(tablet, call)
      #expect(world.request(tablet, .callAnswer(CallAnswer()), call: call) != nil)
      #expect(world.trunkReceived.contains("200"), "another phone takes it")
    } else {
      #expect(world.trunkReceived.contains("200"))
      #expect(
        code(world.request(phone, .callTransfer(CallTransfer(target: Handle(k: .phone, h: "+15559"))), call: call)) == .revoked)
      #expect(code(world.request(phone, .devicePut(Surroundings.put(phone)), call: nil)) == .revoked)
      #expect(code(world.request(phone, .callMute(CallMute(on: true)), call: call)) == nil, "what it has, it has")
      world.connect(phone, "second")
      #expect(world.turnedAway == [SessionID("second")], "a second socket does not take it")
      #expect(world.records.isEmpty)
      world.request(phone, .callEnd(CallEnd()), call: call)
      #expect(world.trunkReceived.contains("BYE") && world.records.count == 1)
    }
    _ = leg
  }

  @Test func `a login that is refused grants nothing`() {
    let world = Surroundings { _, routing in
      routing.directory = UserDirectory(routing.users, anyone: .init(id: "", numbers: []), grantRules: .init(numbers: ["+1"]))
    }
    let carol = DeviceKey(user: "carol", device: "phone")
    world.connect(carol)
    revoke(world, carol)
    world.disconnect(carol, forGood: true)
    world.feed(.app(.granted(carol, SessionID("again"), .init(numbers: ["+15559"], issuedAt: 5))))
    world.connect(carol, "again")
    #expect(world.machine.routing.directory.grants.isEmpty && world.turnedAway == [SessionID("again")])
  }

  @Test func `a revocation at another node ends the calls begun after it once it arrives, others stay`() throws {
    let world = Surroundings()
    world.connect(phone)
    let call = CallID(high: 0xc, low: 2)
    let start = CallStart(to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP())
    world.request(phone, .callStart(start), call: call)
    #expect(world.machine.summaries.count == 1)
    let began = world.now.nanoseconds / 1_000_000 + 1_700_000_000_000
    world.feed(.devices(.revokedRemotely(phone)))
    world.feed(.devices(.revokedBefore(phone, began + 1)))
    #expect(world.machine.summaries.count == 1)
    world.feed(.devices(.revokedBefore(phone, began - 1)))
    #expect(world.records.first?.end.reason == .forbidden && world.records.first?.end.detail == "the device was revoked")
  }
}
