import CallFlow
import CallModel
import Configuration
import Foundation
import Testing

@testable import trunkline

/// The CSV of `trunkline users`, and the report on a user.
@Suite struct NumberListTests {
  /// Reads a list in pieces of `size` bytes.
  private func read(_ text: some Sequence<UInt8>, by size: Int = 1 << 20) throws -> NumberTable {
    var rest = Data(text)
    return try NumberList.read {
      defer { rest = Data(rest.dropFirst(size)) }
      return Data(rest.prefix(size))
    }
  }

  private func fault(_ text: String) -> String? {
    (#expect(throws: NumberList.Fault.self) { _ = try read(text.utf8) })?.description
  }

  @Test(arguments: [1, 2, 7, 1_000])
  func `a list is read whatever the pieces, with CRLF, BOM and quotes`(size: Int) throws {
    let text = "\u{feff}number,user\r\n+15551230001,alice\r\n\"100\",\"Miller, \"\"Bob\"\"\"\n004930,\u{e4}\n"
    let table = try read(text.utf8, by: size)
    #expect(table.count == 3)
    #expect(table.owner(of: "+15551230001")?.user == "alice")
    #expect(table.numbers(of: "Miller, \"Bob\"") == ["100"])
    #expect(table.numbers(of: "\u{e4}") == ["+4930"])
  }

  @Test func `what is exported is imported again`() throws {
    let users = ["alice", "a,b", "\"", "x\"y,", "\u{1F4DE}"]
    let text = NumberList.head + "\n" + users.enumerated().map { NumberList.line("+1\($0.offset)", of: $0.element) }.joined()
    let table = try read(text.utf8)
    for (index, user) in users.enumerated() { #expect(table.owner(of: "+1\(index)")?.user == user) }
  }

  @Test(arguments: [
    ("", "line 1: the file is empty; it begins with number,user"),
    ("+1,alice\n", "line 1: is not number,user, but \"+1,alice\""),
    ("number,user\n+1,alice\n+2\n", "line 3: has one field, not number,user"),
    ("number,user\n+1,alice,x\n", "line 2: has 3 fields, not number,user"),
    ("number,user\n+1,alice\n+2,bo", "line 3: ends without a line break: is the file whole?"),
    ("number,user\n\n", "line 2: has one field, not number,user"),
    ("number,user\n+1,\n", "line 2: the user is missing"),
    ("number,user\n+1,alice\n+2,bob\n001,bob\n", "line 4: 001 is given twice, first in line 2"),
    ("number,user\n+1 2,alice\n", "line 2: \"+1 2\" is not a number: 1 to 15 digits, with + in front of a country code"),
    ("number,user\n+1,\"alice\n", "line 2: a quotation mark is misplaced"),
    ("number,user\n+1,al\"ice\n", "line 2: a quotation mark is misplaced"),
    ("number,user\n+1,\"alice\"x\n", "line 2: a quotation mark is misplaced"),
  ])
  func `a wrong line is named, and nothing is taken`(text: String, why: String) { #expect(fault(text) == why) }

  @Test func `a line that is too long, or no UTF-8, is named`() {
    #expect(fault("number,user\n+1," + String(repeating: "x", count: 5_000)) == "line 2: is longer than 4096 bytes")
    #expect(fault("number,user\n+1," + String(repeating: "x", count: 5_000) + "\n") == "line 2: is longer than 4096 bytes")
    let error = #expect(throws: NumberList.Fault.self) { _ = try read(Array("number,user\n+1,".utf8) + [0xff, 10]) }
    #expect(error?.description == "line 2: is not UTF-8")
  }

  @Test func `more numbers than a table holds are refused where they begin to be too many, with what to do`() throws {
    #expect(NumberTable.limit == 2_000_000)
    let limit = 250_000
    var (sent, next) = (false, 0)
    var total = 0
    let error = #expect(throws: NumberList.Fault.self) {
      _ = try NumberList.read(limit: limit) {
        defer { sent = true }
        guard sent else { return Data("number,user\n".utf8) }
        // 10,000,000 lines, if all were read
        guard next < 10_000_000 else { return Data() }
        defer { next += 10_000 }
        return Data((next..<next + 10_000).map { "+49\($0),u\($0)\n" }.joined().utf8)
      } progress: {
        total = $0
      }
    }
    #expect(error?.line == limit + 2 && total == limit)
    #expect(error?.why.contains("give each gateway the numbers of its own users") == true)
  }

  @Test func `a user's report says where each number is from`() throws {
    var settings = Settings()
    settings.users = [.init(id: "alice", numbers: ["+1"])]
    let imported = try read("number,user\n+1,bob\n+2,bob\n+3,alice\n".utf8)
    #expect(
      UserReport.text(of: "001", in: settings, imported: imported) == """
        user     alice
                 listed in the configuration
        number   +1  (configuration)
        number   +3  (imported)
        """)
    #expect(UserReport.text(of: "+2", in: settings, imported: imported)?.contains("+2  (imported, rings no device)") == true)
    settings.anyUser = .init(id: "", numbers: [])
    #expect(
      UserReport.text(of: "bob", in: settings, imported: imported) == """
        user     bob
                 not listed: users: any holds
        number   +1  (imported, but the configuration gives it to alice)
        number   +2  (imported)
        """)
    #expect(UserReport.text(of: "carol", in: settings, imported: imported) == nil)
  }
}
