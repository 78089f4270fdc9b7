import Cluster
import JSONWebToken
import Testing
import TrunklineBytes

@testable import SharedStore

/// Which changes a signature detects, and which it does not.
@Suite struct SharedStoreSealTests {
  private let key = Array("a cluster's key of thirty-two bytes".utf8)
  private let value = Array(#"{"v":1,"i":"a.1","s":"x"}"#.utf8)
  private func seal(_ key: [UInt8]? = nil, now: Int64 = 1_790_000_000_000) throws -> SharedStoreSeal {
    try #require(SharedStoreSeal(clusterKey: key ?? self.key) { now })
  }

  @Test func `a key derived by HKDF (RFC 5869): one of a label of its own, and none of an empty secret`() throws {
    let tag = try #require(PurposeKey("a", from: key)).tag([1, 2, 3])
    #expect(tag.count == 16)
    #expect(try #require(PurposeKey("a", from: key)).isTag(tag, of: [1, 2, 3]))
    for (label, secret, message) in [("b", key, [1, 2, 3]), ("a", key + [0], [1, 2, 3]), ("a", key, [1, 2])]
      as [(String, [UInt8], [UInt8])]
    {
      #expect(try !#require(PurposeKey(label, from: secret)).isTag(tag, of: message))
    }
    #expect(PurposeKey("a", from: []) == nil && SharedStoreSeal(clusterKey: []) == nil)
  }

  @Test func `a value is genuine where it was written, and with every byte as it was`() throws {
    let seal = try seal()
    let sealed = seal.seal(value, at: "k\nf")
    #expect(sealed.starts(with: value.dropLast()) && seal.isGenuine(sealed, at: "k\nf"))
    for position in ["k\ng", "l\nf", "k", "k\nf\n", ""] { #expect(!seal.isGenuine(sealed, at: position), "\(position)") }
    for index in sealed.indices {
      for bit in [1, 0x20, 0x80] as [UInt8] {
        var damaged = sealed
        damaged[index] ^= bit
        // two bits of a tag's last character are not part of the tag
        if Base64URL.decode(damaged.dropLast(2).suffix(22)) == Base64URL.decode(sealed.dropLast(2).suffix(22)),
          damaged.dropLast(24).elementsEqual(sealed.dropLast(24)), damaged.suffix(2).elementsEqual(sealed.suffix(2))
        {
          continue
        }
        #expect(!seal.isGenuine(damaged, at: "k\nf"), "byte \(index)")
      }
    }
    for count in sealed.indices { #expect(!seal.isGenuine(Array(sealed.prefix(count)), at: "k\nf")) }
    #expect(!seal.isGenuine(value, at: "k\nf"), "unsigned")
    #expect(try !self.seal(Array("the key of before, thirty-two bytes".utf8)).isGenuine(sealed, at: "k\nf"))
    #expect(try self.seal().isGenuine(sealed, at: "k\nf"), "any node of the cluster")
    #expect(!seal.isGenuine(seal.seal(sealed, at: "k\nf").dropLast() + [UInt8(ascii: "x"), UInt8(ascii: "}")], at: "k\nf"))
  }

  @Test func `a number that a script counts may stand in front, and nothing else may`() throws {
    let seal = try seal()
    let sealed = seal.seal(value, at: "p")
    func counted(_ head: String) -> [UInt8] { Array("{\(head)".utf8) + sealed.dropFirst() }
    #expect(
      seal.isGenuine(counted(#""t":1790000000000,"#), at: "p", counted: "t") && seal.isGenuine(sealed, at: "p", counted: "t"))
    for head in [
      #""n":1,"#, #""t":-1,"#, #""t":1"#, #""t":,"#, #""t":1,"s":"y","#, #""t":1,"t":1,"#, #""t":12345678901234567890,"#,
      #" "t":1,"#,
    ] {
      #expect(!seal.isGenuine(counted(head), at: "p", counted: "t"), "\(head)")
    }
    #expect(!seal.isGenuine(counted(#""t":1,"#), at: "p"))
  }

  @Test func `lines carry their signature as the last one`() throws {
    let seal = try seal()
    let sealed = seal.sealed(lines: Array("a.1\nalice\nphone".utf8), at: "p")
    #expect(seal.opened(lines: sealed, at: "p") == Array("a.1\nalice\nphone".utf8))
    #expect(seal.opened(lines: sealed, at: "q") == nil && seal.opened(lines: Array("a.1".utf8), at: "p") == nil)
    #expect(seal.opened(lines: [], at: "p") == nil && seal.opened(lines: Array(sealed.dropFirst()), at: "p") == nil)
    #expect(seal.opened(lines: seal.sealed(lines: [], at: "p"), at: "p") == [])
  }

  @Test func `a lease or message is old after two hours and ten minutes, and has the same bytes for a while`() throws {
    let start: Int64 = 1_790_000_400_000
    let end = try seal(now: start).end
    #expect(try seal(now: start + 60_000).end == end && end > start / 1_000 + 7_200 && end <= start / 1_000 + 7_800)
    #expect(try !seal(now: start + 7_200_000).isOver(end, at: "p") && seal(now: start + 7_801_000).isOver(end, at: "p"))
    #expect(try seal().isOver(nil, at: "p"))
  }

  @Test func `what is not genuine is counted, with the key that it stood in`() throws {
    let seal = try seal()
    #expect(seal.drainFailures() == nil)
    for field in ["a", "b"] { _ = seal.isGenuine(value, at: "tl:{u:alice}:where\n\(field)") }
    let failures = try #require(seal.drainFailures())
    #expect(failures == (2, "tl:{u:alice}:where") && seal.drainFailures() == nil)
  }
}
