import Foundation
import TrunklineBytes

@testable import TrunklineSTUN

/// A sample message of RFC 5769, from Tests/Vectors/stun-rfc5769.
func sample(_ name: String) throws -> [UInt8] {
  let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  return Array(try Data(contentsOf: folder.appendingPathComponent("Vectors/stun-rfc5769/\(name).bin")))
}

/// Parses and hands the view to `body` while the bytes live.
func withMessage<R>(_ bytes: [UInt8], _ body: (STUNMessage) throws -> R) throws -> R {
  try bytes.withUnsafeBytes { raw in
    let message = try STUNMessage(raw)
    return try body(message)
  }
}

/// What a writer makes of `build`, in a buffer of `room` bytes; nil if it did not fit.
func written(
  _ messageClass: STUNClass = .request, transaction: TransactionID = TransactionID(high: 7, low: 9), room: Int = 256,
  _ build: (inout STUNWriter) -> Void
) -> [UInt8]? {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 1)
  defer { buffer.deallocate() }
  var writer = STUNWriter(messageClass, transaction: transaction, into: buffer)
  build(&writer)
  return writer.finish().map { Array(buffer[0..<$0]) }
}

func text(_ bytes: UnsafeRawBufferPointer?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
