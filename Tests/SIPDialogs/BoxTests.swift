import Testing

@testable import TrunklineSIPDialogs

@Suite struct BoxTests {
  @Test func `a box is a value: what is shared is copied before it is changed`() {
    var first = [1: Box("a"), 2: Box("b")]
    let second = first
    first[1]?.value += "!"
    let held = first[2]
    first[2]?.value = "c"
    #expect(first.mapValues(\.value) == [1: "a!", 2: "c"])
    #expect(second.mapValues(\.value) == [1: "a", 2: "b"] && held?.value == "b")
  }
}

@Suite struct BoxTableTests {
  @Test func `a key without a value has none, whatever is changed or removed`() {
    var table = BoxTable<Int, String>()
    table[1]?.value += "!"
    #expect(table[1] == nil && table.remove(1) == nil && table.isEmpty && table.compactMap { $1 }.isEmpty)
  }

  @Test func `a value changes in place, is replaced by a later one, and its slot is used again`() {
    var table = BoxTable<Int, String>()
    for key in 1...3 { table.insert("\(key)", for: key) }
    table.insert("b", for: 2)
    let copy = table
    table[2]?.value += "!"
    #expect(table.remove(1) == "1" && table.remove(1) == nil && table.count == 2)
    table.insert("4", for: 4)
    #expect(table.compactMap { "\($0)\($1)" }.sorted() == ["2b!", "33", "44"] && copy[2]?.value == "b" && copy.count == 3)
  }
}
