import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct PhoneCallTableTests {
  private let peer = Handle(k: .phone, h: "+15550001")

  private func row(_ call: UInt64, group: [UInt64]? = nil) -> CallSnapshot {
    var row = CallSnapshot(
      call: id(call), dir: .incoming, state: .connected, from: peer, to: peer, acct: "default", sdp: nil, gen: 1, at: 0)
    row.group = group?.map(id)
    return row
  }
  /// Connected calls, the later ones with later times.
  private func table(_ count: UInt64) -> PhoneCallTable {
    var table = PhoneCallTable()
    for number in 1...count {
      var call = PhoneCall(to: peer, CallOptions())
      _ = call.screen.dialled(SystemActionID(Int(number)))
      _ = call.dial(id(number), audio: .idle)
      _ = call.handle(.message(.callConnected(CallConnected(at: Int64(number), codec: "opus"))))
      call.connected(at: Int64(number))
      var update = CallUpdate()
      update.caps = CallCapabilities(group: true)
      call.update(update)
      table.add(id(number), call)
    }
    return table
  }

  @Test func `a change of an unknown call has no effect`() {
    var table = PhoneCallTable()
    table[id(1)]?.link.giveUp()
    _ = table[id(1)]?.end(isSilent: true)
    holds(table.all.isEmpty && table.live.isEmpty && !table.hasLive && table.info(of: id(1)) == nil && table.nextDeadline == nil)
    holds(table.leaveGroup(id(1)) == nil && table.lines == 0 && table.audible.call == nil && table.lineToGiveUp == nil)
    #expect(!table.mayGroup(id(1), with: id(2)) && !table.mayGroup(id(1), with: nil) && table.members(of: id(1)) == [id(1)])
  }

  @Test func `ended calls are kept until there are too many, and live ones always`() {
    var table = PhoneCallTable()
    for number in 1...UInt64(Limits.rememberedCalls) { table.add(id(number), PhoneCall(from: peer)) }
    table.add(id(50), PhoneCall(from: peer))
    #expect(table.all.count == Limits.rememberedCalls + 1)
    _ = table[id(3)]?.end(isSilent: true)
    #expect(table[id(3)] != nil && !table.isLive(id(3)) && !table.live.contains(id(3)))
    table.add(id(51), PhoneCall(from: peer))
    #expect(table[id(3)] == nil && table.isLive(id(51)) && table.live == table.all)
  }

  @Test func `calls are of one session each`() {
    var table = table(3)
    table[id(2)]?.link.assigned(to: 4)
    #expect(table.live(of: 4) == [id(2)] && table.live(of: SessionTable.own) == [id(1), id(3)] && table.hasLive(of: 4))
    _ = table[id(2)]?.end(isSilent: true)
    #expect(!table.hasLive(of: 4) && table.live(of: 4) == [] && table.hasLive)
  }

  @Test func `the latest call that is not held has the audio, with those of its group`() {
    var table = table(3)
    #expect(table.audible == (id(3), []))
    table.join(id(1), with: id(3))
    #expect(table.audible == (id(3), [id(1)]))
    table[id(3)]?.hold.begin(true)
    _ = table[id(3)]?.hold.finish(true, isDone: true)
    #expect(table.audible == (id(2), []))
    for number in [UInt64(1), 2] { _ = table[id(number)]?.end(isSilent: true) }
    #expect(table.audible == (nil, []))
  }

  @Test func `a group is one line, and two groups that join are one group`() {
    var table = table(4)
    table.join(id(1), with: id(2))
    table.join(id(3), with: id(4))
    #expect(table.lines == 2 && table.members(of: id(1)) == [id(1), id(2)])
    table.join(id(4), with: id(1))
    table.join(id(4), with: id(1))
    #expect(table.lines == 1 && table.members(of: id(3)).count == 4 && table.info(of: id(3))?.group != nil)
  }

  @Test func `who leaves a group is alone, and the last of a group, too`() {
    var table = table(3)
    table.join(id(1), with: id(2))
    table.join(id(2), with: id(3))
    holds(table.leaveGroup(id(2)) == [id(2)] && table.leaveGroup(id(2)) == nil && table.isGrouped(id(3)))
    _ = table[id(1)]?.end(isSilent: true)
    holds(table.leaveGroup(id(1)) == [id(3)] && !table.isGrouped(id(3)) && table.lines == 2)
  }

  @Test func `connected calls that may be mixed may group, of another or their own call, up to the limit`() {
    var table = table(6)
    #expect(table.mayGroup(id(1), with: id(2)) && !table.mayGroup(id(1), with: id(1)) && !table.mayGroup(id(1), with: id(9)))
    for number in [UInt64(2), 3, 4, 5] { table.join(id(1), with: id(number)) }
    #expect(!table.mayGroup(id(6), with: id(1)) && table.mayGroup(id(5), with: id(1)) && table.mayGroup(id(5), with: nil))
    _ = table[id(5)]?.end(isSilent: true)
    #expect(!table.mayGroup(id(6), with: id(5)))
    var update = CallUpdate()
    update.caps = CallCapabilities(group: false)
    table[id(6)]?.update(update)
    _ = table.leaveGroup(id(1))
    #expect(!table.mayGroup(id(6), with: id(1)))
  }

  @Test func `a snapshot's groups replace those of its calls; unknown and ended calls are in none`() {
    var table = table(4)
    table.join(id(1), with: id(2))
    _ = table[id(4)]?.end(isSilent: true)
    holds(
      table.regroup([row(1), row(2, group: [3]), row(3, group: [2]), row(4, group: [2]), row(9, group: [2])]) == [id(1), id(3)])
    #expect(!table.isGrouped(id(1)) && !table.isGrouped(id(4)) && !table.isGrouped(id(9)) && table.members(of: id(2)).count == 2)
    holds(table.regroup([row(2, group: [3]), row(3, group: [2])]) == [] && table.regroup([]) == [])
  }

  @Test func `orphans are claimed once, in their order, and are limited`() {
    var table = PhoneCallTable()
    holds(table.claimOrphans() == [])
    for number in [UInt64(3), 1, 3] { table.addOrphan(id(number)) }
    holds(table.claimOrphans() == [id(1), id(3)] && table.claimOrphans() == [])
    for number in 1...UInt64(Limits.rememberedCalls + 5) { table.addOrphan(id(number)) }
    holds(table.claimOrphans().count == Limits.rememberedCalls)
  }

  @Test func `the line of a ringing call whose gateway is unreachable may be given up`() {
    var table = table(1)
    var call = PhoneCall(from: peer, isReported: true)
    call.offered(id(2), (sdp: "v=0", generation: 1), audio: .idle)
    table.add(id(2), call)
    #expect(table.lines == 2 && table.lineToGiveUp == nil)
    table[id(1)]?.link.ringsAlone(at: seconds(1))
    #expect(table.lineToGiveUp == nil, "it does not ring")
    table[id(2)]?.link.ringsAlone(at: seconds(1))
    #expect(table.lineToGiveUp == id(2) && table.nextDeadline == seconds(61))
  }
}
