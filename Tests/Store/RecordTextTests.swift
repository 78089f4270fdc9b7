import CallFlow
import Foundation
import Testing

@testable import Store

/// What is written by hand is what `JSONEncoder` writes, whatever a record holds.
@Suite struct RecordTextTests {
  /// Every field there is.
  private static let whole = """
    {"call":"00000000-0000-0001-0000-000000000001","sipCallId":"a/b@c\\"\\\\\\u0001\\n\\t\\r\\b\\f","direction":"in","trunk":"carrier",
    "from":"+15550000001","to":"+15551230001 ü€😀\\u007f","user":"alice","device":"phone","devices":2,
    "times":{"start":1,"ended":9223372036854775807,"firstAudioToApp":3,"firstAudioToTrunk":4,"dtls":5,"connected":-6},
    "end":{"reason":"remoteHangup","by":"trunk","sip":200,"detail":"why"},"connectedMs":17,
    "codecs":{"trunk":"PCMU","app":"opus"},"srtp":"AEAD_AES_128_GCM","trunkSrtp":"AES_CM_128_HMAC_SHA1_80",
    "fromTrunk":{"packets":18446744073709551615,"sent":2,"lost":3,"loss":0.00001,"late":4,"dropped":5,"jitterMs":0.25,"bufferMs":60,
    "concealedMs":6,"repairedMs":7,"rttMs":12.5,"mos":4.4,"bursts":{"density":0.1,"ms":100,"gapDensity":1e-05,"gapMs":1e21,"ratio":1.5},
    "levelDb":-26.1,"noiseDb":-61},
    "fromApp":{"packets":0,"sent":0,"lost":0,"loss":0,"late":0,"dropped":0,"jitterMs":0,"bufferMs":0,"concealedMs":0,"repairedMs":0},
    "diversions":[{"why":"unreached","user":"bob","number":"+1","recording":"a.wav","code":486,"trunk":"t","sipCallId":"x"},
    {"why":"busy"}]}
    """

  private func expected(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  private func text(_ record: CallRecord) -> String {
    var text = RecordText()
    text.append(record)
    return String(decoding: text.bytes, as: UTF8.self)
  }

  @Test func `a record with every field, and one with none that may be absent`() throws {
    let whole = try JSONDecoder().decode(CallRecord.self, from: Data(Self.whole.utf8))
    #expect(text(whole) == (try expected(whole)) + "\n")
    #expect(text(record(1)) == (try expected(record(1))) + "\n")
    var text = RecordText()
    text.append(whole)
    text.append(record(2))
    #expect(String(decoding: text.bytes, as: UTF8.self) == (try expected(whole)) + "\n" + (try expected(record(2))) + "\n")
  }

  @Test func `numbers that are none are words`() throws {
    var record = try JSONDecoder().decode(CallRecord.self, from: Data(Self.whole.utf8))
    record.fromTrunk?.rttMs = .infinity
    record.fromTrunk?.mos = .nan
    record.fromTrunk?.levelDb = -.infinity
    #expect(text(record) == (try expected(record)) + "\n")
  }

  @Test func `every stage of a call has its place`() throws {
    var record = record(1)
    for (index, stage) in CallStage.allCases.enumerated() { record.times[stage.rawValue] = Int64(index) }
    #expect(text(record) == (try expected(record)) + "\n")
  }

  @Test func `a start line`() throws {
    for line in [
      startLine(1),
      StartLine(
        call: startLine(2).call, sipCallId: nil, direction: .outgoing, trunk: "", from: "", to: "", user: nil, start: 0,
        connect: 7),
    ] {
      var text = RecordText()
      text.append(line)
      #expect(String(decoding: text.bytes, as: UTF8.self) == (try expected(line)))
    }
  }

  /// A field that is added to a record must be written too.
  @Test func `no field is forgotten`() throws {
    let whole = try JSONDecoder().decode(CallRecord.self, from: Data(Self.whole.utf8))
    func fields(_ value: Any) -> Int { Mirror(reflecting: value).children.count }
    func written(_ value: some Encodable) throws -> Int {
      (try JSONSerialization.jsonObject(with: Data(try expected(value).utf8)) as? [String: Any])?.count ?? 0
    }
    let (stream, diversion) = (try #require(whole.fromTrunk), try #require(whole.diversions?.first))
    let bursts = try #require(stream.bursts)
    #expect(try fields(whole) == written(whole))
    #expect(try fields(whole.end) == written(whole.end))
    #expect(try fields(whole.codecs) == written(whole.codecs))
    #expect(try fields(stream) == written(stream))
    #expect(try fields(bursts) == written(bursts))
    #expect(try fields(diversion) == written(diversion))
    var line = startLine(1)
    line.connect = 2
    #expect(try fields(line) == written(line))
  }
}
