import Foundation

/// Call records and journal entries as JSON with sorted keys, without line breaks.
struct RecordEncoder {
  private let encoder = JSONEncoder()

  init() {
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // A statistic that is no number must not cost the record.
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
  }

  func encode(_ value: some Encodable) throws -> [UInt8] { [UInt8](try encoder.encode(value)) }
}
