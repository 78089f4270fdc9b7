import Foundation

/// The list of calls for people.
enum CallTable {
  private struct Row: Decodable {
    var call: String
    var direction: String
    var state: String
    var trunk: String
    var from: String
    var to: String
    var user: String
  }
  private struct Body: Decodable { var calls: [Row] }

  static func render(_ body: String) throws -> String {
    let rows = try JSONDecoder().decode(Body.self, from: Data(body.utf8)).calls
    guard !rows.isEmpty else { return "no calls" }
    let cells =
      [["CALL", "DIRECTION", "STATE", "TRUNK", "USER", "FROM", "TO"]]
      + rows.map { [$0.call, $0.direction, $0.state, $0.trunk, $0.user, $0.from, $0.to] }
    return TextTable.render(cells)
  }
}
