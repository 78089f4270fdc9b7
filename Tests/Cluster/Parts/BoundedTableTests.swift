import Testing
import TrunklineBytes

@testable import Cluster

@Suite struct BoundedTableTests {
  private func table(_ keys: Int, until end: Double = 9, most: Int = 1_000) -> BoundedTable<Int, String> {
    var table = BoundedTable<Int, String>(most: most)
    for key in 0..<keys { table.set(key, "\(key)", until: seconds(end), at: .zero) }
    return table
  }

  @Test func `a value is replaced and removed once; of a full table the one that expires first is evicted`() {
    var table = table(0, most: 2)
    #expect(table.set(1, "a", until: seconds(5), at: .zero) && table.set(2, "b", until: seconds(3), at: .zero))
    #expect(table.set(1, "c", until: seconds(6), at: .zero) && table[1] == "c" && table.count == 2)
    #expect(!table.set(3, "d", until: seconds(9), at: .zero) && table[2] == nil && Set(table.keys) == [1, 3])
    table.remove(1)
    table.remove(1)
    table.change(1) { $0 = "x" }
    table.change(3) { $0 = "y" }
    #expect(table.count == 1 && table[1] == nil && table[3] == "y" && table.keys == [3])
  }

  @Test func `however many values expire at once, a change removes some, and later ones the others`() {
    var table = table(100, until: 5)
    table.set(100, "new", until: seconds(60), at: seconds(10))
    #expect(table.count > 50)
    for _ in 0..<10 { table.expire(at: seconds(10)) }
    #expect(table.count == 1 && table[100] == "new")
  }

  @Test func `a walk in pages meets every key that stays, whatever is added, removed and replaced meanwhile`() {
    var table = table(100)
    var (seen, below, step) = (Set<Int>(), Int?.none, 0)
    repeat {
      let page = table.page(below: below, most: 7)
      seen.formUnion(page.keys)
      below = page.below
      // even keys below 50 go, in the order of the walk and against it; a new one comes
      table.remove(step * 2)
      table.remove(48 - step * 2)
      table.set(1_000 + step, "new", until: seconds(9), at: .zero)
      table.set(99, "again", until: seconds(9), at: .zero)
      step += 1
    } while below != 0
    let stays = (0..<100).filter { $0 >= 50 || $0 % 2 == 1 }
    #expect(seen.isSuperset(of: stays) && step < 30)
    #expect(table.page(below: 0, most: 7).keys.isEmpty && table.page(below: 5_000, most: 7).keys.count == 7)
  }
}
