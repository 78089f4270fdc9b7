import AppSessions
import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

/// Groups of calls: which calls may be in one, and how it changes with them.
@Suite struct GroupTests {
  private func calls(_ count: Int, _ world: Surroundings, by key: DeviceKey = phone) throws
    -> [(call: CallID, session: MediaSessionID)]
  {
    world.connect(key)
    return try (0..<count).map { _ in
      let leg = world.invite()
      let call = try #require(world.offeredCall(key))
      world.warm(key, call)
      #expect(world.isOK(world.request(key, .callAnswer(CallAnswer()), call: call)))
      world.feed(.sip(.acknowledged(leg, sdp: nil)))
      return (call, try #require(world.session))
    }
  }

  private func group(_ world: Surroundings, _ call: CallID, _ other: CallID?, by key: DeviceKey = phone) -> RequestAnswer? {
    world.request(key, .callGroup(CallGroup(with: other)), call: call)
  }

  @Test func `two calls of a device are one group of its media, and with of none leaves it (MID-2)`() throws {
    let world = Surroundings()
    let made = try calls(2, world)
    #expect(world.isOK(group(world, made[0].call, made[1].call)))
    let number = try #require(world.groups[made[0].session])
    #expect(world.groups[made[1].session] == number)
    // the request is safe to repeat
    #expect(world.isOK(group(world, made[1].call, made[0].call)) && world.groups.count == 2)
    // if one of two leaves, the group is dissolved
    #expect(world.isOK(group(world, made[0].call, nil)) && world.groups.isEmpty)
    #expect(world.isOK(group(world, made[0].call, nil)))
  }

  @Test func `a call that joins a group brings its own group along, up to five`() throws {
    let world = Surroundings { configuration, _ in configuration.bounds.callsPerUser = 8 }
    let made = try calls(6, world)
    #expect(world.isOK(group(world, made[0].call, made[1].call)))
    #expect(world.isOK(group(world, made[2].call, made[3].call)))
    #expect(Set(world.groups.values).count == 2)
    #expect(world.isOK(group(world, made[0].call, made[3].call)))
    #expect(Set(world.groups.values).count == 1 && world.groups.count == 4)
    #expect(world.isOK(group(world, made[4].call, made[0].call)))
    let before = world.groups
    #expect(world.code(group(world, made[5].call, made[0].call)) == .tooMany)
    #expect(world.code(group(world, made[0].call, made[5].call)) == .tooMany && world.groups == before)
    #expect(world.isOK(group(world, made[1].call, nil)))
    #expect(world.isOK(group(world, made[5].call, made[0].call)) && world.groups.count == 5)
  }

  @Test func `a call that rings, is over or is another user's cannot be grouped, nor with itself, with no reason given`() throws {
    let world = Surroundings()
    let made = try calls(1, world)
    world.invite()
    let ringing = try #require(world.offeredCall(phone))
    let stranger = Identifier(high: 1, low: 2)
    for other in [ringing, stranger] {
      let answer = group(world, made[0].call, other)
      #expect(world.code(answer) == .badState)
      if case .err(let failure)? = answer { #expect(failure.msg == "with is not a connected call of this device") }
    }
    #expect(world.code(group(world, ringing, made[0].call)) == .badState)
    #expect(world.code(group(world, made[0].call, made[0].call)) == .badRequest)
    world.request(phone, .callReject(CallReject()), call: ringing)
    #expect(world.code(group(world, ringing, made[0].call)) == .gone)
    #expect(world.code(group(world, made[0].call, ringing)) == .badState && world.groups.isEmpty)
    // a call of another user, and of another device of the same user
    let bob = DeviceKey(user: "bob", device: "bobs")
    world.connect(bob)
    world.invite(to: "+15551230009")
    let his = try #require(world.offeredCall(bob))
    world.warm(bob, his)
    #expect(world.isOK(world.request(bob, .callAnswer(CallAnswer()), call: his)))
    #expect(world.code(group(world, made[0].call, his)) == .badState)
    #expect(world.code(group(world, his, made[0].call, by: bob)) == .badState)
    world.disconnect(phone)
    let second = try calls(1, world, by: tablet)[0]
    #expect(world.code(group(world, second.call, made[0].call, by: tablet)) == .badState && world.groups.isEmpty)
  }

  @Test func `an event names the other calls of a group whenever they change, and so does the list of calls`() throws {
    let world = Surroundings()
    world.feed(.events(.init(isOn: true)))
    let made = try calls(3, world).map(\.call)
    func told() -> [String] {
      defer { world.events.removeAll() }
      return world.events.compactMap { event in
        guard case .call(let facts) = event.facts, let call = made.firstIndex(of: facts.call) else { return nil }
        let others = facts.group?.compactMap { made.firstIndex(of: $0) }.map { "\($0)" } ?? []
        return (["\(call)", event.kind == .callGrouped ? "with" : event.kind.rawValue] + others.sorted()).joined(separator: " ")
      }
    }
    func listed(_ index: Int) -> [CallID]? { world.machine.summaries.first { $0.call == made[index] }?.group }
    _ = told()
    #expect(made.indices.allSatisfy { listed($0) == nil })
    _ = group(world, made[0], made[1])
    #expect(told() == ["0 with 1", "1 with 0"] && listed(0) == [made[1]] && listed(2) == nil)
    _ = group(world, made[1], made[0])
    #expect(told() == [], "nothing has changed")
    _ = group(world, made[2], made[0])
    #expect(Set(told()) == ["0 with 1 2", "1 with 0 2", "2 with 0 1"])
    #expect(Set(listed(2) ?? []) == [made[0], made[1]])
    _ = group(world, made[1], nil)
    #expect(told() == ["1 call.ungrouped", "0 with 2", "2 with 0"] && listed(1) == nil && listed(0) == [made[2]])
    world.request(phone, .callEnd(CallEnd()), call: made[0])
    #expect(told() == ["2 call.ungrouped"] && listed(2) == nil)
  }

  @Test func `calls whose media is on different threads cannot be grouped`() throws {
    let world = Surroundings()
    let first = try calls(1, world)[0]
    world.mediaThread = 1
    let second = try calls(1, world)[0]
    #expect(world.code(group(world, first.call, second.call)) == .unsupported && world.groups.isEmpty)
  }

  @Test func `hold, mute, digits and a new session leave a group as it is, and the snapshot has it`() throws {
    let world = Surroundings()
    let made = try calls(3, world)
    #expect(world.isOK(world.request(phone, .callHold(CallHold(on: true)), call: made[1].call)))
    #expect(world.isOK(group(world, made[0].call, made[1].call)), "a held call may be in a group")
    let before = world.groups
    for on in [false, true, false] { world.request(phone, .callHold(CallHold(on: on)), call: made[1].call) }
    world.request(phone, .callMute(CallMute(on: true)), call: made[0].call)
    world.request(phone, .callDTMF(CallDTMF(digits: "1")), call: made[0].call)
    #expect(world.groups == before)
    world.disconnect(phone, forGood: true)
    world.connect(phone, "again")
    let rows = try #require(world.welcomes[SessionID("again")]).calls
    #expect(rows.first { $0.call == made[0].call }?.group == [made[1].call])
    #expect(rows.first { $0.call == made[1].call }?.group == [made[0].call])
    #expect(rows.first { $0.call == made[2].call }?.group == nil)
    // a device that does not have the calls does not get the group
    world.connect(tablet, "other")
    #expect(world.welcomes[SessionID("other")]?.calls.allSatisfy { $0.group == nil } ?? true)
  }

  @Test func `a call that is hung up leaves the group, and the last one is in none`() throws {
    let world = Surroundings()
    let made = try calls(3, world)
    _ = (group(world, made[0].call, made[1].call), group(world, made[2].call, made[1].call))
    #expect(Set(world.groups.values).count == 1 && world.groups.count == 3)
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: made[0].call)))
    #expect(world.groups[made[1].session] != nil && world.groups[made[2].session] != nil)
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: made[1].call)))
    #expect(world.groups[made[2].session] == nil)
    let record = try #require(world.records.first)
    #expect(record.times["grouped"] != nil)
    // the id of an ended group is not used again
    let next = try calls(1, world)[0]
    #expect(world.isOK(group(world, made[2].call, next.call)))
  }
}

/// A device that translates: the audio that it sends is the translation.
@Suite struct TranslationTests {
  private func mutes(_ world: Surroundings) -> [Bool] {
    world.actions.compactMap { if case .media(.mute(_, let on)) = $0 { on } else { nil } }
  }

  @Test func `a mute during a translation is the microphone's, and the trunk still gets the translation (MID-3, MID-4)`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    let translate = CallTranslate(on: true, local: "en", remote: "de", engine: .default)
    #expect(world.isOK(world.request(phone, .callTranslate(translate), call: call)))
    #expect(world.isOK(world.request(phone, .callMute(CallMute(on: true, mode: .input)), call: call)))
    #expect(mutes(world).isEmpty)
    world.connect(phone, "again")
    #expect(world.welcomes[SessionID("again")]?.calls.first?.translate == translate)
    // when the translation ends, the mute applies again
    #expect(world.isOK(world.request(phone, .callTranslate(CallTranslate(on: false)), call: call, on: "again")))
    #expect(mutes(world) == [true])
    // muted before the translation begins: the audio from now on is the translation
    #expect(world.isOK(world.request(phone, .callTranslate(translate), call: call, on: "again")))
    #expect(mutes(world) == [true, false])
    #expect(world.isOK(world.request(phone, .callTranslate(translate), call: call, on: "again")))
    #expect(mutes(world) == [true, false])
  }

  @Test func `a call that rings is not translated`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    #expect(world.code(world.request(phone, .callTranslate(CallTranslate(on: true)), call: call)) == .badState)
  }
}
