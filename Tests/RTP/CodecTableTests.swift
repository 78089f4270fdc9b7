import Testing
import TrunklineRTP

@testable import TrunklineRTP

/// Mistakes in the rows are reported before anything is negotiated with them.
@Suite struct CodecTableTests {
  private func rows(with row: CodecRow) -> [CodecRow] { CodecTable.rows.map { $0.encoding == row.encoding ? row : $0 } }

  @Test func `the table's own rows are sound, in the order of the cases`() throws {
    try CodecTable.check(CodecTable.rows)
    #expect(CodecTable.rows.map(\.encoding) == AudioEncoding.allCases)
    for row in CodecTable.rows {
      #expect(
        CodecTable.encoding(named: row.name.uppercased(), clockRateHz: row.clockRateHz, channels: row.channels) == row.encoding)
      #expect(AudioEncoding(named: row.name) == row.encoding)
    }
  }

  @Test func `a codec without a row is not supported`() {
    #expect(CodecTable.encoding(named: "EVS", clockRateHz: 16_000, channels: 1) == nil)
    #expect(CodecTable.encoding(named: "L16", clockRateHz: 44_100, channels: 2) == nil)
    #expect(CodecTable.encoding(named: "opus", clockRateHz: 48_000, channels: 1) == nil)
    #expect(AudioEncoding(named: "") == nil && AudioEncoding(named: "G729") == nil)
  }

  @Test(arguments: [UInt8(35), 72, 95, 128, 255])
  func `a payload type out of range is refused`(_ number: UInt8) {
    let row = CodecRow(.l16, name: "L16", payloadType: number, octetsPerUnit: 2, apps: .never)
    #expect(throws: CodecTableError.payloadType("L16", number)) { try CodecTable.check(rows(with: row)) }
  }

  @Test func `a payload type that another row has is refused`() {
    let row = CodecRow(.l16, name: "L16", payloadType: 111, octetsPerUnit: 2, apps: .never)
    #expect(throws: CodecTableError.payloadType("L16", 111)) { try CodecTable.check(rows(with: row)) }
  }

  @Test func `a missing row is refused`() {
    #expect(throws: CodecTableError.order) { try CodecTable.check(CodecTable.rows.dropLast()) }
  }

  @Test func `a codec whose shortest frame does not fit the payload is refused`() {
    let row = CodecRow(.l16, name: "L16", payloadType: 97, clockRateHz: 48_000, channels: 2, octetsPerUnit: 4, apps: .never)
    #expect(row.octets(ofMilliseconds: 10) == 1_920 && row.packetTimes.isEmpty)
    #expect(throws: CodecTableError.framesDoNotFit("L16")) { try CodecTable.check(rows(with: row)) }
  }

  @Test func `the row decides which frames fit: a packet time that does not becomes a shorter one`() {
    let wide = CodecRow(.l16, name: "L16", payloadType: 97, clockRateHz: 16_000, octetsPerUnit: 2, apps: .never)
    #expect(wide.packetTimes == [10, 20, 30, 40] && wide.packetTime(atMost: 60) == 40)
    #expect(AudioEncoding.l16.row.packetTimes == [10, 20, 30, 40, 50, 60])
    #expect(AudioEncoding.l16.row.octets(ofMilliseconds: 20) == 320)
    #expect(AudioEncoding.opus.row.packetTime(atMost: 50) == 40 && AudioEncoding.opus.row.packetTime(atMost: 5) == 10)
  }

  @Test func `payloads last as long as their octets say`() {
    for encoding in AudioEncoding.allCases {
      let (row, length) = (encoding.row, PayloadLength(encoding))
      let octets = row.octetsPerUnit == 0 ? 50 : row.octets(ofMilliseconds: 20)
      #expect(length.units(ofOctets: octets) == row.clockRateHz / 50 && length.milliseconds(ofOctets: octets) == 20)
    }
  }
}
