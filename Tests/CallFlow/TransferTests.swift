import AppSessions
import PhoneNumbers
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIP
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone

/// REFER in and out, blind and attended, and INVITE with Replaces.
@Suite struct TransferTests {
  private func world() -> Surroundings {
    Surroundings { _, routing in routing.trunks[0].rules.allowsTransfer = true }
  }

  private func referral(_ number: String, replaces: Replaces? = nil) -> Referral {
    Referral(target: .init(number: number), uri: "sip:\(number)@x", replaces: replaces, referredBy: "<sip:bob@x>")
  }

  private func invites(_ world: Surroundings) -> [(leg: LegID, invite: OutboundInvite)] {
    world.actions.compactMap { if case .sip(.invite(let leg, let invite)) = $0 { (leg, invite) } else { nil } }
  }

  @Test func `a blind transfer of the trunk: INVITE, NOTIFY, and the call continues on the new leg`() throws {
    let world = world()
    let (leg, call) = try world.connected()
    world.feed(.sip(.referReceived(leg, referral("+15558880000"))))
    let made = try #require(invites(world).last)
    #expect(made.invite.to == "+15558880000" && made.invite.from == "+15551230001" && made.invite.maxForwards == 69)
    #expect(made.invite.extraHeaders.map(\.name) == ["Referred-By"])
    world.feed(.sip(.progress(made.leg, code: 180, sdp: nil)))
    world.feed(.sip(.answered(made.leg, sdp: Surroundings.trunkSDP(port: 6_800))))
    #expect(world.trunkReceived.suffix(5) == ["202 REFER", "INVITE +15558880000", "NOTIFY 180", "NOTIFY 200", "BYE"])
    world.feed(.sip(.legClosed(leg)))
    #expect(world.machine.summaries.count == 1 && world.records.isEmpty)
    world.feed(.sip(.byeReceived(made.leg, nil)))
    world.feed(.sip(.legClosed(made.leg)))
    world.expectRecord(.remoteHangup, by: .trunk)
    #expect(world.records.first?.times[CallStage.transferred.rawValue] != nil && world.records.first?.call == call)
    let transfer = try #require(world.records.first?.transfers?.first)
    #expect(transfer.by == .trunk && transfer.number == "+15558880000" && transfer.referredBy == "<sip:bob@x>")
    #expect(transfer.trunk == "carrier" && transfer.sipCallId == made.invite.callID && transfer.sip == 200)
    #expect(world.machine.calls.legs.isEmpty)
  }

  @Test func `a transfer that fails leaves the call where it was`() throws {
    let world = world()
    let (leg, _) = try world.connected()
    world.feed(.sip(.referReceived(leg, referral("+15558880000"))))
    let made = try #require(invites(world).last)
    world.feed(.sip(.failed(made.leg, code: 486, cause: nil, byTransport: false)))
    world.feed(.sip(.legClosed(made.leg)))
    #expect(world.trunkReceived.last == "NOTIFY 486" && world.machine.summaries.count == 1)
    world.feed(.sip(.byeReceived(leg, nil)))
    world.expectRecord(.remoteHangup, by: .trunk)
    #expect(world.records.first?.transfers?.map(\.sip) == [486])
  }

  @Test(arguments: [200, 486]) func `while the trunk transfers a call its app cannot, and is notified of that and of the end`(
    code: Int
  ) throws {
    let world = world()
    let (leg, call) = try world.connected()
    func caps() -> [CallCapabilities] {
      world.messages[phone, default: []].compactMap { if case .callUpdate(let update) = $0 { update.caps } else { nil } }
    }
    let transfer = CallTransfer(target: Handle(k: .phone, h: "+15557654321"))
    #expect(caps() == [], "the offer has told it")
    world.feed(.sip(.referReceived(leg, referral("+15558880000"))))
    let (without, with) = (
      CallCapabilities(hold: true, group: true, dtmf: true), CallCapabilities(hold: true, group: true, dtmf: true, transfer: true)
    )
    #expect(caps() == [without])
    #expect(world.code(world.request(phone, .callTransfer(transfer), call: call)) == .badState)
    let made = try #require(invites(world).last)
    if code == 200 {
      world.feed(.sip(.answered(made.leg, sdp: Surroundings.trunkSDP(port: 6_800))))
    } else {
      world.feed(.sip(.failed(made.leg, code: code, cause: nil, byTransport: false)))
    }
    #expect(caps() == [without, with])
    #expect(world.isOK(world.request(phone, .callTransfer(transfer), call: call)) || code == 200)
  }

  @Test func `the peer that asked may hang up at once: the call waits for the transfer, and ends with it if it fails`() throws {
    for succeeds in [true, false] {
      let world = world()
      let (leg, _) = try world.connected()
      world.feed(.sip(.referReceived(leg, referral("+15558880000"))))
      let made = try #require(invites(world).last)
      world.feed(.sip(.byeReceived(leg, nil)))
      world.feed(.sip(.legClosed(leg)))
      #expect(world.machine.summaries.count == 1)
      if succeeds {
        world.feed(.sip(.answered(made.leg, sdp: Surroundings.trunkSDP())))
        #expect(world.machine.summaries.count == 1)
        world.feed(.sip(.byeReceived(made.leg, nil)))
      } else {
        world.feed(.sip(.failed(made.leg, code: 480, cause: nil, byTransport: false)))
      }
      world.feed(.sip(.legClosed(made.leg)))
      world.expectRecord(.remoteHangup, by: .trunk)
      #expect(world.machine.calls.legs.isEmpty)
    }
  }

  @Test func `the app ends a call that is being transferred: CANCEL and BYE`() throws {
    let world = world()
    let (leg, call) = try world.connected()
    world.feed(.sip(.referReceived(leg, referral("+15558880000"))))
    let made = try #require(invites(world).last)
    world.request(phone, .callEnd(CallEnd()), call: call)
    #expect(world.trunkReceived.suffix(2) == ["CANCEL", "BYE"])
    for leg in [made.leg, leg] { world.feed(.sip(.legClosed(leg))) }
    world.expectRecord(.localEnd, by: .app)
    #expect(world.machine.calls.legs.isEmpty)
  }

  @Test func `a REFER is under the user's outbound rules`() throws {
    for (number, code) in [("911", 403), ("+15551230002", 482), ("+15551230009", 482), ("sales", 404), ("0301234", 603)] {
      let world = world()
      let (leg, _) = try world.connected()
      world.feed(.sip(.referReceived(leg, referral(number))))
      #expect(world.trunkReceived.last == "\(code) REFER", "\(number)")
      #expect(invites(world).isEmpty && world.machine.summaries.count == 1)
    }
  }

  @Test func `a transfer's numbers are written as its trunk wants them, with one hop less`() throws {
    let world = Surroundings { _, routing in
      routing.trunks[0].rules.allowsTransfer = true
      routing.trunks[0].numbers = NumberRules(
        outgoing: [.init(prefix: "+1", strip: 2, add: "00")], caller: [.init(prefix: "+", strip: 1, add: "")])
    }
    let (leg, _) = try world.connected()
    world.feed(.sip(.referReceived(leg, referral("+15558880000"))))
    let made = try #require(invites(world).last).invite
    #expect(
      made.to == "005558880000" && made.from == "15551230001" && made.assertedIdentity == "15551230001" && made.maxForwards == 69)
  }

  private func opaque(_ number: String, _ host: String, replaces: Replaces? = nil) -> Referral {
    let user = number.isEmpty ? "" : number + "@"
    var referral = Referral(
      target: .init(number: number, host: host), uri: "sip:\(user)\(host);x-t=2", replaces: replaces, referredBy: "<sip:bob@x>")
    referral.isOpaque = true
    return referral
  }

  @Test(arguments: ["", "+15558880000"]) func `a Refer-To of the trunk's own host is called as it is written`(number: String)
    throws
  {
    let world = world()
    let (leg, _) = try world.connected()
    world.feed(.sip(.referReceived(leg, opaque(number, "127.0.0.1"))))
    let made = try #require(invites(world).last)
    #expect(made.invite.uri == "sip:\(number.isEmpty ? "" : number + "@")127.0.0.1;x-t=2")
    #expect(made.invite.trunk.name == "carrier" && made.invite.maxForwards == 69)
    #expect(made.invite.extraHeaders.map { "\($0.name): \($0.value)" } == ["Referred-By: <sip:bob@x>"])
    world.feed(.sip(.answered(made.leg, sdp: Surroundings.trunkSDP(port: 6_800))))
    #expect(world.trunkReceived.suffix(2) == ["NOTIFY 200", "BYE"])
    world.feed(.sip(.legClosed(leg)))
    world.feed(.sip(.byeReceived(made.leg, nil)))
    world.feed(.sip(.legClosed(made.leg)))
    world.expectRecord(.remoteHangup, by: .trunk)
    #expect(world.records.first?.transfers?.map(\.number) == [number.isEmpty ? nil : number])
  }

  @Test func `a Refer-To of another host is a number, or nothing`() throws {
    let world = world()
    let (leg, _) = try world.connected()
    world.feed(.sip(.referReceived(leg, opaque("", "other.example"))))
    #expect(world.trunkReceived.last == "404 REFER" && invites(world).isEmpty)
    world.feed(.sip(.referReceived(leg, opaque("+15558880000", "other.example"))))
    #expect(invites(world).last?.invite.uri == nil && invites(world).last?.invite.to == "+15558880000")
  }

  @Test func `the user's rules hold for what is called as it is written`() throws {
    for (number, code) in [("911", 403), ("+15551230002", 482), ("0301234", 603)] {
      let world = world()
      let (leg, _) = try world.connected()
      world.feed(.sip(.referReceived(leg, opaque(number, "127.0.0.1"))))
      #expect(world.trunkReceived.last == "\(code) REFER" && invites(world).isEmpty, "\(number)")
    }
    for allowance in [UserAllowance(prefixes: ["+1"]), .init(calls: 0), .init(callsPerHour: 0)] {
      let world = Surroundings { _, routing in
        routing.trunks[0].rules.allowsTransfer = true
        routing.users[0].allowance = allowance
      }
      let (leg, _) = try world.connected()
      world.feed(.sip(.referReceived(leg, opaque("", "127.0.0.1"))))
      #expect(world.trunkReceived.last == "603 REFER" && invites(world).isEmpty, "\(allowance)")
    }
    let diverted = world()
    let (leg, _) = try diverted.connected(diversions: 3)
    diverted.feed(.sip(.referReceived(leg, opaque("", "127.0.0.1"))))
    #expect(diverted.trunkReceived.last == "482 REFER")
  }

  @Test func `a call that was diverted three times is transferred no more`() throws {
    let world = world()
    let (leg, _) = try world.connected(diversions: 3)
    world.feed(.sip(.referReceived(leg, referral("+15558880000"))))
    #expect(world.trunkReceived.last == "482 REFER")
  }

  @Test func `transfers of transfers end after three`() throws {
    let world = world()
    var (leg, _) = try world.connected()
    for _ in 0..<3 {
      world.feed(.sip(.referReceived(leg, referral("+15558880000"))))
      let made = try #require(invites(world).last)
      world.feed(.sip(.answered(made.leg, sdp: Surroundings.trunkSDP())))
      world.feed(.sip(.legClosed(leg)))
      leg = made.leg
    }
    world.feed(.sip(.referReceived(leg, referral("+15558880000"))))
    #expect(world.trunkReceived.last == "482 REFER")
  }

  @Test func `an attended transfer carries Replaces to the same trunk`() throws {
    let world = world()
    let (leg, _) = try world.connected()
    world.feed(.sip(.referReceived(leg, referral("+15558880000", replaces: Replaces(callID: "c", toTag: "t", fromTag: "f")))))
    let made = try #require(invites(world).last)
    #expect(
      made.invite.extraHeaders.map { "\($0.name): \($0.value)" } == [
        "Referred-By: <sip:bob@x>", "Replaces: c;to-tag=t;from-tag=f",
      ])
  }

  @Test func `INVITE with Replaces takes the call over at once`() throws {
    let world = world()
    let (leg, _) = try world.connected()
    var invite = InboundInvite(
      trunk: "carrier", source: Surroundings.peer.flow, callID: "r", from: .init(number: "+1444"),
      to: .init(number: "+15551230001"),
      sdp: Surroundings.trunkSDP(port: 6_900))
    invite.replaces = leg
    let next = LegID.inbound(77)
    world.feed(.sip(.inviteReceived(next, invite)))
    #expect(world.trunkReceived.suffix(2) == ["BYE", "200"])
    world.feed(.sip(.legClosed(leg)))
    world.feed(.sip(.acknowledged(next, sdp: nil)))
    #expect(
      world.machine.summaries.count == 1 && world.machine.statistics.incoming == 1 && world.machine.statistics.replaced == 1)
    world.feed(.sip(.byeReceived(next, nil)))
    world.feed(.sip(.legClosed(next)))
    world.expectRecord(.remoteHangup, by: .trunk)
    #expect(world.records.first?.transfers?.map(\.sipCallId) == ["r"])
    #expect(world.machine.calls.legs.isEmpty)
  }

  @Test func `the app transfers: REFER, call-transferred, and our part is over`() throws {
    let world = world()
    let (leg, call) = try world.connected()
    let target = Handle(k: .phone, h: "+1 555 888-0000")
    #expect(world.isOK(world.request(phone, .callTransfer(CallTransfer(target: target)), call: call)))
    #expect(world.trunkReceived.last == "REFER sip:+15558880000@127.0.0.1:5080")
    #expect(world.code(world.request(phone, .callTransfer(CallTransfer(target: target)), call: call)) == .badState)
    world.feed(.sip(.referAnswered(leg, code: 202)))
    world.feed(.sip(.referProgress(leg, code: 180, isFinal: false)))
    world.feed(.sip(.referProgress(leg, code: 200, isFinal: true)))
    let told = world.received[phone]?.filter { $0.hasPrefix("call.transferred") }
    #expect(told == ["call.transferred trying", "call.transferred ringing", "call.transferred done"])
    #expect(world.trunkReceived.last == "BYE" && world.received[phone]?.last == "call.ended localEnd")
    world.expectRecord(.localEnd, by: .app)
    let transfer = try #require(world.records.first?.transfers?.first)
    #expect(transfer.by == .app && transfer.number == "+15558880000" && transfer.sip == 200 && transfer.sipCallId == nil)
  }

  @Test(arguments: [nil, 100, 180, 302, 486, 603] as [Int?])
  func `a transfer that no 2xx says is done leaves the call to the app`(code: Int?)
    throws
  {
    let world = world()
    let (leg, call) = try world.connected()
    let target = CallTransfer(target: Handle(k: .phone, h: "+15558880000"))
    #expect(world.isOK(world.request(phone, .callTransfer(target), call: call)))
    world.feed(.sip(.referAnswered(leg, code: 202)))
    world.feed(.sip(.referProgress(leg, code: code, isFinal: true)))
    #expect(world.received[phone]?.contains("call.transferred failed") == true && world.trunkReceived.last != "BYE")
    #expect(world.machine.summaries.count == 1, "nobody hung up")
    #expect(world.isOK(world.request(phone, .callTransfer(target), call: call)), "it can be asked again")
    world.feed(.sip(.byeReceived(leg, nil)))
    world.expectRecord(.remoteHangup, by: .trunk)
    #expect(world.records.first?.transfers?.first?.sip == code.flatMap { $0 < 200 ? nil : $0 })
  }

  /// The number that was checked is the one that is sent.
  @Test(arguments: [
    ("(555) 888-0000", "+15558880000"), ("1 555 888 0000", "+15558880000"),
    ("+15558880000", "+15558880000"), ("01149301234567", nil), ("+4930123456", nil), ("004930123456", nil),
    ("011 1 555 888 0000", "+15558880000"),
  ])
  func `the number of a transfer is the one that was checked`(dialled: String, sent: String?) throws {
    let world = Surroundings { _, routing in
      routing.trunks[0].rules.allowsTransfer = true
      routing.users[0].country = NumberPlan(country: "1")
      routing.users[0].allowance.prefixes = ["+1"]
      routing.outbound = [.init(prefix: "", trunk: "carrier")]
    }
    let (_, call) = try world.connected()
    let transfer = CallTransfer(target: Handle(k: .phone, h: dialled))
    let code = world.code(world.request(phone, .callTransfer(transfer), call: call))
    guard let sent else {
      // In North America 00 is not an international prefix: a bad request; other numbers are forbidden
      #expect(
        code == (dialled.hasPrefix("00") ? .badRequest : .forbidden) && world.trunkReceived.last?.hasPrefix("REFER") == false)
      return
    }
    #expect(code == nil && world.trunkReceived.last == "REFER sip:\(sent)@127.0.0.1:5080")
    world.request(phone, .callEnd(CallEnd()), call: call)
    #expect(world.records.first?.transfers?.map(\.number) == [sent])
  }

  @Test func `the trunk of a transfer gets the checked number as it writes numbers`() throws {
    let world = Surroundings { _, routing in
      routing.trunks[0].rules.allowsTransfer = true
      routing.trunks[0].numbers = NumberRules(outgoing: [.init(prefix: "+", strip: 1, add: "00")])
    }
    let (_, call) = try world.connected()
    let transfer = CallTransfer(target: Handle(k: .phone, h: "+15558880000"))
    #expect(world.isOK(world.request(phone, .callTransfer(transfer), call: call)))
    #expect(world.trunkReceived.last == "REFER sip:0015558880000@127.0.0.1:5080")
  }

  @Test func `a handle that is not a telephone number is not a target, whatever its text`() throws {
    let world = world()
    let (_, call) = try world.connected()
    let transfer = CallTransfer(target: Handle(k: .generic, h: "+15558880000"))
    #expect(world.code(world.request(phone, .callTransfer(transfer), call: call)) == .badRequest)
  }

  @Test(arguments: [("0015558880000", "+15558880000"), ("5558880000", "+15558880000"), ("004930123456", nil)])
  func `the target of a REFER is read as its trunk writes numbers`(target: String, called: String?) throws {
    let world = Surroundings { _, routing in
      routing.trunks[0].rules.allowsTransfer = true
      routing.trunks[0].numbers = NumberRules(country: target.hasPrefix("00") ? .init(country: "49") : .init(country: "1"))
      routing.users[0].allowance.prefixes = ["+1"]
    }
    let (leg, _) = try world.connected()
    world.feed(.sip(.referReceived(leg, referral(target))))
    #expect(invites(world).last?.invite.to == called)
    if called == nil { #expect(world.trunkReceived.last == "603 REFER") }
  }

  @Test func `a refused transfer leaves the call to the app, and if the trunk accepts none it is unsupported`() throws {
    let world = world()
    let (leg, call) = try world.connected()
    let target = Handle(k: .phone, h: "+15558880000")
    _ = world.request(phone, .callTransfer(CallTransfer(target: target)), call: call)
    world.feed(.sip(.referAnswered(leg, code: 603)))
    #expect(world.received[phone]?.last == "call.transferred failed" && world.machine.summaries.count == 1)
    #expect(
      world.code(world.request(phone, .callTransfer(CallTransfer(target: Handle(k: .phone, h: "112"))), call: call)) == .emergency
    )
    #expect(world.code(world.request(phone, .callTransfer(CallTransfer(withCall: call)), call: call)) == .badState)
    let plain = Surroundings()
    let (_, other) = try plain.connected()
    #expect(plain.code(plain.request(phone, .callTransfer(CallTransfer(target: target)), call: other)) == .unsupported)
  }

  @Test func `a transfer to a number counts for the user's calls of an hour, one that cannot be asked for does not`() throws {
    let world = Surroundings { _, routing in
      routing.trunks[0].rules.allowsTransfer = true
      routing.users[0].allowance = .init(callsPerHour: 1)
    }
    let (leg, call) = try world.connected()
    func transfer(_ target: Handle) -> ErrorCode? {
      world.code(world.request(phone, .callTransfer(CallTransfer(target: target)), call: call))
    }
    let target = Handle(k: .phone, h: "+15558880000")
    #expect(transfer(Handle(k: .phone, h: "no number")) == .badRequest)
    #expect(transfer(target) == nil)
    #expect(transfer(target) == .badState, "one is under way")
    world.feed(.sip(.referAnswered(leg, code: 603)))
    #expect(transfer(target) == .tooMany)
    #expect(world.trunkReceived.count { $0.hasPrefix("REFER") } == 1)
    world.pass(.seconds(3_600))
    #expect(transfer(target) == nil)
  }
}
