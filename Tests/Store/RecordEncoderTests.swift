import CallFlow
import CallModel
import Foundation
import Testing

@testable import Store

/// What a line of the records file and of the journal holds.
@Suite struct RecordEncoderTests {
  /// Every field there is.
  private static let whole = """
    {"call":"00000000-0000-0001-0000-000000000001","sipCallId":"a/b@c\\"\\\\\\u0001\\n\\t\\r\\b\\f","direction":"in","trunk":"carrier",
    "from":"+15550000001","to":"+15551230001 ü€😀\\u007f","user":"alice","device":"phone","devices":2,
    "times":{"start":1,"ended":9223372036854775807,"firstAudioToApp":3,"firstAudioToTrunk":4,"dtls":5,"connected":-6},
    "end":{"reason":"remoteHangup","by":"trunk","sip":200,"detail":"why"},"connectedMs":17,
    "codecs":{"trunk":"PCMU","app":"opus"},"band":"wide","srtp":"AEAD_AES_128_GCM","trunkSrtp":"AES_CM_128_HMAC_SHA1_80",
    "fromTrunk":{"packets":18446744073709551615,"sent":2,"lost":3,"loss":0.00001,"late":4,"dropped":5,"jitterMs":0.25,"bufferMs":60,
    "concealedMs":6,"repairedMs":7,"rttMs":12.5,"mos":4.4,"bursts":{"density":0.1,"ms":100,"gapDensity":1e-05,"gapMs":1e21,"ratio":1.5},
    "levelDb":-26.1,"noiseDb":-61},
    "fromApp":{"packets":0,"sent":0,"lost":0,"loss":0,"late":0,"dropped":0,"jitterMs":0,"bufferMs":0,"concealedMs":0,"repairedMs":0},
    "diversions":[{"why":"unreached","user":"bob","number":"+1","recording":"a.wav","code":486,"trunk":"t","sipCallId":"x"},
    {"why":"busy"}]}
    """

  private func whole() throws -> CallRecord { try JSONDecoder().decode(CallRecord.self, from: Data(Self.whole.utf8)) }
  private func text(_ value: some Encodable) throws -> String {
    String(decoding: try RecordEncoder().encode(value), as: UTF8.self)
  }

  @Test func `a record with every field, and one with none that may be absent, come back as they were`() throws {
    for record in [try whole(), record(1)] {
      #expect(try JSONDecoder().decode(CallRecord.self, from: Data(RecordEncoder().encode(record))) == record)
    }
  }

  @Test func `a record is one line with sorted keys and plain slashes`() throws {
    let line = try text(whole())
    #expect(!line.contains("\n") && line.hasPrefix(#"{"band":"wide","call":"00000000-0000-0001-0000-000000000001","codecs":"#))
    #expect(line.contains(#""sipCallId":"a/b@c"#) && line.hasSuffix(#""user":"alice"}"#))
  }

  @Test func `numbers that are none are words`() throws {
    var record = try whole()
    record.fromTrunk?.rttMs = .infinity
    record.fromTrunk?.mos = .nan
    record.fromTrunk?.levelDb = -.infinity
    let line = try text(record)
    #expect(line.contains(#""rttMs":"inf""#) && line.contains(#""mos":"nan""#) && line.contains(#""levelDb":"-inf""#))
  }

  @Test func `a journal entry comes back as it was`() throws {
    for line in [
      journalEntry(1),
      JournalEntry(
        call: journalEntry(2).call, sipCallId: nil, direction: .outgoing, trunk: "", from: "", to: "", user: nil, start: 0,
        connect: 7),
    ] {
      #expect(try JSONDecoder().decode(JournalEntry.self, from: Data(RecordEncoder().encode(line))) == line)
    }
  }
}
