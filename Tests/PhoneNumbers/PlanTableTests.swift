import CPhoneNumbers
import Testing

@testable import PhoneNumbers

@Suite struct PlanTableTests {
  private let bytes = Array(UnsafeBufferPointer(start: cphone_numbers, count: cphone_numbers_length))

  @Test func `the table is the binary's, names its version and is small`() throws {
    let table = try PlanTable(bytes)
    #expect(table.version == NumberPlan.version && table.version.split(separator: ".").count == 3)
    #expect(table.regions.count > 240 && bytes.count <= 300_000)
  }

  @Test func `a table that is cut or changed is refused, wherever`() {
    for length in [0, 1, 40, 95, 96, 97, bytes.count / 2, bytes.count - 1] {
      #expect(throws: length < 96 ? PlanTable.Fault.notATable : .damaged) { try PlanTable(bytes.prefix(length)) }
    }
    #expect(throws: PlanTable.Fault.damaged) { try PlanTable(bytes + [0]) }
    for offset in [48, 56, 97, bytes.count / 2, bytes.count - 1] {
      var changed = bytes
      changed[offset] ^= 1
      #expect(throws: PlanTable.Fault.damaged, "\(offset)") { try PlanTable(changed) }
    }
    var other = bytes
    other[20] ^= 1
    #expect(throws: PlanTable.Fault.notATable) { try PlanTable(other) }
  }
}
