import Foundation
import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// The 49 messages of RFC 4475 and those of RFC 5118 at the user agent: what each is owed, over UDP and over TCP under any split.
@Suite struct TortureVerdictTests {
  /// Status codes that answer a message; none: it is dropped.
  static let verdicts: [(name: String, codes: [Int])] = [
    // 3.1.1 valid: an endpoint that is no registrar says so
    ("wsinv", [481]), ("intmeth", [501]), ("esc01", [100]), ("escnull", [405]), ("esc02", [501]), ("lwsdisp", [200]),
    ("longreq", [100]), ("dblreq", [405]), ("semiuri", [200]), ("transports", [200]), ("mpart01", [405]), ("unreason", []),
    ("noreason", []),
    // 3.1.2 invalid
    ("badinv01", [400]), ("clerr", [400]), ("ncl", [400]), ("scalar02", [400]), ("scalarlg", []), ("quotbal", [400]),
    ("ltgtruri", [400]), ("lwsruri", [400]), ("lwsstart", [400]), ("trws", [400]), ("escruri", [400]),
    // Date is passed over; blanks inside angle brackets are, too
    ("baddate", [100]), ("regbadct", [400]), ("badaspec", [200]), ("baddn", [400]), ("badvers", [505]), ("mismatch01", [400]),
    ("mismatch02", [400]), ("bigcode", []),
    // 3.2 to 3.4: transactions, applications, RFC 2543
    ("badbranch", [200]), ("insuf", [400]), ("unkscm", [416]), ("novelsc", [416]), ("unksm2", [405]), ("bext01", [420]),
    ("invut", [415]), ("regaut01", [405]), ("multi01", [400]), ("mcl01", [400]), ("bcast", []), ("zeromf", [200]),
    ("cparam01", [405]), ("cparam02", [405]), ("regescrt", [405]), ("sdp01", [406]), ("inv2543", [100]),
  ]

  static let addresses: [(name: String, codes: [Int])] = [
    ("ipv6-good", [405]), ("ipv6-bad", [400]), ("port-ambiguous", [405]), ("port-unambiguous", [405]),
    ("via-received-param-with-delim", [481]), ("via-received-param-no-delim", [481]), ("ipv6-in-sdp", [100]),
    ("mult-ip-in-header", [481]), ("mult-ip-in-sdp", [100]), ("ipv4-mapped-ipv6", [100]),
    // three colons: the grammar of RFC 3261 allowed them by mistake, so they are read
    ("ipv6-bug-abnf-3-colons", [200]),
  ]

  private func vector(_ name: String, _ folder: String = "sip-rfc4475") throws -> [UInt8] {
    let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return Array(try Data(contentsOf: tests.appending(path: "Vectors/\(folder)/\(name).dat")))
  }

  @Test func `the table has all 49 messages, each with its file`() throws {
    #expect(Set(Self.verdicts.map(\.name)).count == 49)
    for verdict in Self.verdicts { #expect(try !vector(verdict.name).isEmpty) }
  }

  @Test(arguments: verdicts.map { ($0.name, $0.codes, "sip-rfc4475") } + addresses.map { ($0.name, $0.codes, "sip-rfc5118") })
  func `a torture message gets the verdict it is owed over UDP`(name: String, codes: [Int], folder: String) throws {
    var wire = Wire()
    let replies = wire.input(.received(try vector(name, folder), udp, trunk: "carrier"))
    #expect(replies.map(\.statusCode) == codes, "\(name)")
    let calls = wire.events().filter { $0.name == "invite" }.count
    #expect(calls == (codes == [100] ? 1 : 0))
    switch name {
    case "bext01": #expect(replies.first?.value(.unsupported) == "nothingSupportsThis, nothingSupportsThisEither")
    case "invut": #expect(replies.first?.value(.accept) == "application/sdp")
    case "inv2543":
      #expect(wire.input(.received(try vector(name), udp, trunk: "carrier")).map(\.statusCode) == [100])
      #expect(wire.events().isEmpty, "without a branch a retransmission is still one")
    default: break
    }
    // the next request is served
    #expect(wire.receive(request("OPTIONS", branch: "z9hG4bKnext")).map(\.statusCode) == [200])
  }

  /// Over a connection some verdicts differ: what has no Content-Length, or a wrong one, ends the stream.
  private func overTCP(_ name: String, _ udp: [Int]) -> [Int] {
    switch name {
    // the rest of the 9,999 bytes never comes
    case "clerr": []
    // two messages in one stream
    case "dblreq": [405, 100]
    // RFC 3261 §20.14: without Content-Length there is no telling where it ends
    case "inv2543": [400]
    default: udp
    }
  }

  @Test(arguments: verdicts.map { ($0.name, $0.codes, "sip-rfc4475") } + addresses.map { ($0.name, $0.codes, "sip-rfc5118") })
  func `a torture message gets its verdict over TCP, whatever the split`(name: String, codes: [Int], folder: String) throws {
    let bytes = try vector(name, folder)
    var random = SplitMix64(seed: 4475)
    for round in 0..<6 {
      var wire = Wire()
      var framer = StreamFramer()
      var replies: [Int] = []
      var rest = bytes[...]
      while !rest.isEmpty {
        let size = round == 0 ? rest.count : round == 1 ? 1 : Int(random.next() % 40) + 1
        framer.append(Array(rest.prefix(size)))
        rest = rest.dropFirst(size)
        while let frame = framer.next() {
          switch frame {
          case .message(let message), .broken(let message, _):
            replies += wire.input(.received(message, tcp, trunk: "carrier")).compactMap(\.statusCode)
          case .ping: break
          }
        }
      }
      #expect(replies == overTCP(name, codes), "\(name), split \(round)")
    }
  }
}
