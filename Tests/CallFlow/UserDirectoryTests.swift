import Testing
import Trunking

@testable import CallFlow
@testable import CallModel

/// Which users exist, and which number each of them has.
@Suite struct UserDirectoryTests {
  private func table(_ rows: (String, String)...) throws -> NumberTable {
    var builder = NumberTable.Builder()
    for (number, user) in rows { try builder.add(number: number, user: user) }
    return builder.finish()
  }

  private let alice: Routing.User = {
    var user = Routing.User(id: "alice", numbers: ["+15551230001"], allowance: UserAllowance(calls: 3))
    user.account = "home"
    return user
  }()

  @Test func `a number of the list may be written as people write it`() throws {
    let table = try table(("+49 (0)30 1234567", "alice"), ("+44 20 7946-0018", "bob"))
    #expect(table.owner(of: "+49301234567")?.user == "alice" && table.numbers(of: "bob") == ["+442079460018"])
  }

  @Test func `a number is found as carriers write it, and comes back as the list has it`() throws {
    let table = try table(("+15551230001", "alice"), ("100", "bob"), ("004930123", "carol"), ("0800", "dora"), ("800", "eve"))
    for written in ["+15551230001", "0015551230001", "15551230001"] {
      #expect(table.owner(of: written)?.user == "alice" && table.owner(of: written)?.number == "+15551230001")
    }
    #expect(table.owner(of: "+100")?.number == "100")
    #expect(table.owner(of: "4930123")?.number == "+4930123")
    #expect(table.owner(of: "0800")?.user == "dora" && table.owner(of: "800")?.user == "eve")
    #expect(table.numbers(of: "dora") == ["0800"])
    for stranger in ["", "+", "00", "08000", "+1555123000", "+155512300011", "1555123000#", "9999999999999999999999", "\u{661}"] {
      #expect(table.owner(of: stranger) == nil, "\(stranger)")
    }
  }

  @Test func `a table knows each of many numbers and no other`() throws {
    var builder = NumberTable.Builder()
    for index in 0..<20_000 { try builder.add(number: "+4930\(1_000_000 + index)", user: "user-\(index * 7 % 9_999)") }
    let table = builder.finish()
    #expect(table.count == 20_000 && table.userCount == 9_999)
    for index in 0..<20_000 {
      let number = "+4930\(1_000_000 + index)"
      #expect(table.owner(of: number)?.user == "user-\(index * 7 % 9_999)")
      #expect(table.owner(of: "+4931\(1_000_000 + index)") == nil)
    }
    #expect(table.numbers(of: "user-7") == ["+49301000001", "+49301010000", "+49301019999"])
    #expect(table.numbers(of: "user-10000").isEmpty && !table.contains(user: "user-") && !table.contains(user: ""))
    var all: [String] = []
    table.forEach { number, _ in all.append(number) }
    #expect(all == (0..<20_000).map { "+4930\(1_000_000 + $0)" })
    #expect(table.bytes <= 120 * table.count)
  }

  @Test func `an invalid row is refused, and no part of it is kept`() throws {
    var builder = NumberTable.Builder()
    try builder.add(number: "+1", user: "alice")
    for number in ["", "+", "00", "+1 555", "12a", "*31", "1234567890123456", "++1"] {
      #expect(throws: NumberTable.Fault.notANumber(number)) { try builder.add(number: number, user: "x") }
    }
    #expect(throws: NumberTable.Fault.twice("001", first: 0)) { try builder.add(number: "001", user: "bob") }
    #expect(throws: NumberTable.Fault.noUser) { try builder.add(number: "2", user: "") }
    #expect(throws: NumberTable.Fault.userMalformed) { try builder.add(number: "2", user: "a\u{7f}") }
    #expect(throws: NumberTable.Fault.userTooLong) { try builder.add(number: "2", user: String(repeating: "x", count: 257)) }
    for index in 1..<Limits.tableNumbersPerUser { try builder.add(number: "1000\(index)", user: "alice") }
    #expect(throws: NumberTable.Fault.tooManyOfUser("alice")) { try builder.add(number: "2", user: "alice") }
    let table = builder.finish()
    #expect(table.count == Limits.tableNumbersPerUser && table.userCount == 1)
    #expect(builder.count == 0 && builder.finish().isEmpty)
  }

  @Test func `a listed user keeps its settings and gets imported numbers after its own`() throws {
    let imported = try table(("+15551230009", "alice"), ("+15551230001", "bob"), ("+15551230002", "bob"))
    let directory = UserDirectory([alice], anyone: .init(id: "", numbers: []), imported: imported)
    #expect(directory.user("alice")?.numbers == ["+15551230001", "+15551230009"])
    #expect(directory.user("alice")?.allowance.calls == 3 && directory.user("alice")?.account == "home")
    #expect(directory.listed.first?.numbers == ["+15551230001"])
    // The configuration decides about its own numbers.
    #expect(directory.owner(of: "15551230001")?.user == "alice")
    #expect(directory.user("bob")?.numbers == ["+15551230002"])
  }

  @Test func `a user that is not listed has the settings of any, and does not exist without them`() throws {
    let imported = try table(("+15551230002", "bob"))
    let closed = UserDirectory([alice], imported: imported)
    #expect(closed.user("bob") == nil && !closed.contains("bob") && closed.owner(of: "+15551230002") == nil)
    let open = UserDirectory([alice], anyone: .init(id: "", numbers: [], allowance: UserAllowance(calls: 1)), imported: imported)
    #expect(open.user("bob")?.id == "bob" && open.user("bob")?.numbers == ["+15551230002"])
    #expect(open.user("bob")?.allowance.calls == 1)
    #expect(open.user("whoever")?.numbers == [] && open.contains("whoever"))
    #expect(open.user("") == nil && !open.contains(""))
    #expect(open.owner(of: "0015551230002")?.number == "+15551230002")
  }

  @Test func `routes, callers and owners come from the directory`() throws {
    var routing = Routing(users: [alice], inbound: [.init(trunk: "t", target: .users)])
    routing.directory = UserDirectory(
      [alice], anyone: .init(id: "", numbers: []), imported: try table(("+15551230002", "bob"), ("+15551230003", "bob")))
    #expect(routing.route(called: "15551230003", trunk: "t")?.user == "bob")
    #expect(routing.route(called: "15551230003", trunk: "t")?.number == "+15551230003")
    #expect(routing.route(called: "15551230004", trunk: "t") == nil && routing.route(called: "15551230003", trunk: "u") == nil)
    #expect(routing.callerNumber(of: "bob", wanted: nil) == "+15551230002")
    #expect(routing.callerNumber(of: "bob", wanted: "0015551230003") == "+15551230003")
    #expect(routing.callerNumber(of: "bob", wanted: "+15551230001") == nil)
    #expect(routing.isOwn("+15551230002", of: "bob") && !routing.isOwn("+15551230002", of: "alice"))
    #expect(routing.isOwn("+15551230002") && !routing.isOwn("+15551230004"))
    routing.users[0].name = "Alice"
    #expect(routing.user("alice")?.name == "Alice" && routing.user("bob")?.numbers.count == 2)
  }
}
