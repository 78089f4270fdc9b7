import Testing
import TrunklineBytes

@testable import WebServer

/// Who has a stream, on virtual time.
@Suite struct StreamPlacesTests {
  /// The table, in a box: an expectation cannot change a value.
  private final class Table {
    var slots: StreamSlots
    init(_ slots: StreamSlots = StreamSlots()) { self.slots = slots }
    func begin(_ number: UInt64, of client: String, at now: Instant) -> UInt64? { slots.begin(number, of: client, at: now) }
    func look(_ number: UInt64, sent: UInt64, unread: Int, at now: Instant) -> Bool {
      slots.look(number, sent: sent, unread: unread, at: now)
    }
  }
  private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

  @Test func `a client has its share of the slots; beyond it its own idlest gives way, and no other client's`() {
    let table = Table(StreamSlots(most: 16, perClient: 8))
    #expect(table.begin(100, of: "crm", at: at(0)) == nil)
    for number in 0..<8 as Range<UInt64> { #expect(table.begin(number, of: "bi", at: at(1 + Int64(number))) == nil) }
    #expect(table.look(0, sent: 0, unread: 0, at: at(20)))
    #expect(table.begin(8, of: "bi", at: at(21)) == 1, "the one that was read last the longest time ago")
    #expect(table.slots.numbers == [0, 2, 3, 4, 5, 6, 7, 8, 100])
    #expect(table.slots.slots[100]?.client == "crm")
  }

  @Test func `where all slots are in use, the client with the most gives one; so each new client gets in`() {
    let table = Table(StreamSlots(most: 16, perClient: 8))
    for number in 0..<8 as Range<UInt64> {
      _ = table.begin(number, of: "a", at: at(1))
      _ = table.begin(100 + number, of: "b", at: at(2))
    }
    #expect(table.begin(200, of: "c", at: at(3)) == 0)
    #expect(table.begin(201, of: "d", at: at(4)) == 100)
    #expect(table.slots.slots.count == 16)
    table.slots.end(200)
    #expect(table.begin(202, of: "e", at: at(5)) == nil, "a place that is free is taken")
  }

  @Test func `a stream whose client takes nothing for ten seconds has no reader, one that takes a little has`() {
    let table = Table()
    _ = table.begin(1, of: "", at: at(0))
    #expect(table.look(1, sent: 1_000, unread: 0, at: at(5)))
    for (sent, unread, second) in [(5_000, 4_000, 6), (9_000, 8_000, 10), (9_000, 8_000, 14)] as [(UInt64, Int, Int64)] {
      #expect(table.look(1, sent: sent, unread: unread, at: at(second)), "\(second)")
    }
    #expect(!table.look(1, sent: 20_000, unread: 19_000, at: at(15)), "what is added is nothing that was taken")
    #expect(table.look(1, sent: 20_000, unread: 18_999, at: at(15)), "an octet is")
    #expect(table.look(1, sent: 20_000, unread: 18_999, at: at(24)))
    #expect(!table.look(1, sent: 20_000, unread: 18_999, at: at(25)))
    #expect(table.look(1, sent: 20_000, unread: 0, at: at(26)) && table.look(1, sent: 20_000, unread: 0, at: at(3_600)))
    for unread in [-1, Int.max, Int.min] { _ = table.look(1, sent: .max, unread: unread, at: at(3_601)) }
    #expect(table.look(9, sent: 0, unread: 5, at: at(0)), "of one that is gone there is nothing to say")
  }
}
