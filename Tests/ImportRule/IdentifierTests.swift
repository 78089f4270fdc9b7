import Foundation
import Testing

/// Names in the sources use the words of the field: the table of docs/contributing.md, Words.
@Suite struct IdentifierTests {
  /// A word of a declared name, and what to write instead. `turn` in lower case is the TURN protocol's.
  private static var rows: [(pattern: Regex<Substring>, instead: String, samples: [String])] {
    [
      (/(?:tell|.*Tell)(?:s|ing)?(?![a-z]).*/, "notify, report, send", ["tellChange", "mayTell", "tells"]),
      (/(?:told|untold|.*Told)(?![a-z]).*/, "reported, sent, notified", ["isTold", "told", "untold", "toldAt"]),
      (
        /(?:tak|.*Tak)(?:e|es|en|ing|er)(?![a-z]).*/, "dequeue, read, accept, handle",
        ["take", "isTaken", "takesPort", "takeDue"]
      ),
      (/(?:took|.*Took)(?![a-z]).*/, "elapsed, received, accepted", ["took", "tookOver"]),
      (/.*Turns?(?![a-z]).*|turns/, "step", ["Turn", "endTurn", "readsPerTurn", "turns", "LongestTurns"]),
      (/(?:standing|.*Standing)(?![a-z]).*/, "liveness, state", ["Standing", "standing"]),
      (/(?:doubt|.*Doubt)(?:ful|s)?(?![a-z]).*/, "unconfirmed end, suspect", ["isInDoubt", "doubtful"]),
      (/(?:seat|.*Seat)s?(?![a-z]).*/, "slot", ["askSeat", "seatRequests"]),
      (/(?:wish|.*Wish)(?:es|ed)?(?![a-z]).*/, "action, request", ["Wish", "wished"]),
      (/(?:astray|.*Astray)(?![a-z]).*/, "without a session", ["isAstray", "goesAstray"]),
      (/(?:door|.*Door)s?(?![a-z]).*/, "endpoint, entry point", ["AdminDoor", "door"]),
      (/goOn|goesOn/, "continue, resume", ["goOn"]),
      (/lastWord|.*LastWord.*/, "last change", ["lastWord"]),
      (/(?:App|Cluster|Push|Network|Key|Audio|Directory)Side/, "component", ["AppSide"]),
      (/(?:Admin|Call|Device|Directory|Event|Health|Log|Node|Trace|Trunk|Where)Pages/, "handlers", ["CallPages"]),
      (/(?:Phone|Media|CallSystem|Audio|App|Handset)Order/, "command, request", ["PhoneOrder"]),
      (
        /places?|placed|Place|(?!inPlace).*[a-z]Places?(?![a-z]).*|placeTimer|(?:dis|mis|.*[mM]is)placed/,
        "location, position, slot, index",
        ["place", "places", "CallPlace", "StreamPlaces", "wrongPlace", "isSamePlace", "getPlaces", "placeTimer", "misplaced"]
      ),
      (
        /(?:Shared|Memory|Redis)Engine|Engine(?:Request|Reply|Keys|Settings|Failure|Event|State|Shard|Worker).*/, "SharedStore",
        ["SharedEngine", "EngineRequest", "EngineRequestID"]
      ),
      (
        /lastHeard|directoryHeard|heardOf.*|hearTroubles|(?:digit|learnt|mayBe|peerHas|not)Heard/, "received",
        ["lastHeard", "digitHeard", "learntHeard", "notHeard"]
      ),
      (
        /(?:nobody|.*Nobody).*|(?:whom|.*Whom)(?![a-z]).*/, "no device, no user, the callee",
        ["nobodyCame", "isOfNobody", "whom"]
      ),
      (/Orders?/, "Command, Request", ["Order"]),
      (/readLast/, "lastAcceptedAt", ["readLast"]),
    ]
  }

  @Test func `a declared name has the field's words`() throws {
    let tree = SourceTree()
    let declaration = /\b(?:let|var|func|case|struct|class|enum|protocol|actor|typealias|associatedtype)\s+`?(\w+)/
    let rows = Self.rows
    var names = 0
    for file in tree.files where file.path.hasSuffix(".swift") {
      let text = try String(contentsOf: tree.root.deletingLastPathComponent().appendingPathComponent(file.path), encoding: .utf8)
      for line in text.split(separator: "\n") {
        let code = line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line
        guard code.contains(where: { !$0.isWhitespace }) else { continue }
        for name in code.matches(of: declaration).map(\.output.1) {
          names += 1
          for row in rows where name.wholeMatch(of: row.pattern) != nil {
            Issue.record("\(file.path): \(name): write \(row.instead) (docs/contributing.md, Words)")
          }
        }
      }
    }
    #expect(names > 10_000)
  }

  @Test func `each old word is found`() {
    for row in Self.rows {
      for sample in row.samples { #expect(sample.wholeMatch(of: row.pattern) != nil, "\(sample)") }
      for name in ["turn", "turnURLs", "mistake", "intake", "replace", "inPlace", "order", "side"] {
        #expect(name.wholeMatch(of: row.pattern) == nil, "\(name)")
      }
    }
  }
}
