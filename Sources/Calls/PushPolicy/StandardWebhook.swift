import CTrunklineOpenSSL
import Foundation
public import TrunklineBytes

/// Signatures by the Standard Webhooks specification: HMAC-SHA256 over `ID.TIMESTAMP.BODY`.
public enum StandardWebhook {
  /// The key of a secret in a file: `whsec_` and base64, or any other text, used unchanged; nil below 16 bytes.
  public static func key(_ text: String) -> [UInt8]? {
    let word = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard word.hasPrefix("whsec_") else { return word.utf8.count >= 16 ? Array(word.utf8) : nil }
    guard let data = Data(base64Encoded: String(word.dropFirst(6))), data.count >= 16 else { return nil }
    return [UInt8](data)
  }

  /// The request's headers; `webhook-signature` has one signature for each key.
  public static func headers(
    id: String, body: [UInt8], keys: [Redacted<[UInt8]>], at unixSeconds: Int64
  ) -> [(name: String, value: String)] {
    let text = Array("\(id).\(unixSeconds).".utf8) + body
    let signatures = keys.compactMap { signature(text, key: $0.exposed) }
    return [
      ("content-type", "application/cloudevents+json"), ("webhook-id", id), ("webhook-timestamp", "\(unixSeconds)"),
      ("webhook-signature", signatures.joined(separator: " ")),
    ]
  }

  /// Whether one of a request's signatures was made with one of the keys, and its time is within `tolerance` seconds of `now`.
  public static func isGenuine(
    id: String, timestamp: String, signatures: String, body: [UInt8], keys: [[UInt8]], now: Int64, tolerance: Int64 = 300
  ) -> Bool {
    guard let at = Int64(timestamp), abs(at.subtractingReportingOverflow(now).partialValue) <= tolerance else { return false }
    let text = Array("\(id).\(timestamp).".utf8) + body
    let given = signatures.split(separator: " ").map { Array($0.utf8) }
    return keys.contains { key in
      guard let right = signature(text, key: key).map({ Array($0.utf8) }) else { return false }
      return given.contains { $0.count == right.count && CRYPTO_memcmp($0, right, right.count) == 0 }
    }
  }

  private static func signature(_ text: [UInt8], key: [UInt8]) -> String? {
    var out = [UInt8](repeating: 0, count: 32)
    var length: UInt32 = 0
    guard HMAC(EVP_sha256(), key, Int32(clamping: key.count), text, text.count, &out, &length) != nil, length == 32 else {
      return nil
    }
    return "v1," + Data(out).base64EncodedString()
  }
}
