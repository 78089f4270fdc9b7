import Foundation
import Testing
import Trunking

@testable import trunkline

@Suite struct TrunkTableTests {
  private func status(_ json: String) throws -> TrunkStatus { try JSONDecoder().decode(TrunkStatus.self, from: Data(json.utf8)) }

  @Test func `trunks are a table, with why one is down`() throws {
    let up = try status(
      #"{"trunk":"a","up":true,"breakerOpen":false,"calls":2,"servers":[{"address":"192.0.2.1:5060","up":true}]}"#)
    let down = try status(
      """
      {"trunk":"carrier","up":false,"why":"not registered","breakerOpen":true,"calls":0,"servers":[],
       "registration":{"registered":false,"expires":0},"lastRefusal":{"method":"REGISTER","code":403,"at":1000}}
      """)
    let lines = TrunkTable.render([up, down]).split(separator: "\n")
    #expect(lines.count == 3 && lines[0].hasPrefix("TRUNK    STATE"))
    #expect(lines[1].contains("up ") && lines[1].contains("1/1"))
    #expect(lines[2].contains("down (not registered), breaker open") && lines[2].contains("1970-01-01T00:00:00Z (failing)"))
    #expect(lines[2].hasSuffix("REGISTER 403 at 1970-01-01T00:00:01Z"))
    #expect(TrunkTable.render([]).hasPrefix("no trunks"))
    #expect(TrunkTable.details(up).contains("server  192.0.2.1:5060 up"))
  }

  @Test func `a trunk's name is safe in a path`() { #expect(TrunksCommand.path("a/b c") == "/v1/trunks/a%2Fb%20c") }
}
