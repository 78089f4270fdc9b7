import JSONWebToken
import TrunklineHPKE

/// Encrypts the caller so that only the app can read it, not the push service: HPKE, one message for each key. Stateless;
/// about 0.1 ms.
///
///     enc = Base64url(one-time public key, 32 bytes ‖ text and tag)
///     info = "trunkline caller v1", authenticated data = the call's id as in `call`
///
/// The text is the JSON of `from`, filled with spaces to a multiple of 64 bytes, so that its length does not reveal the name.
public enum CallerSealing {
  static let keyBytes = HPKE.keyBytes
  private static let info = Array("trunkline caller v1".utf8)
  private static let block = 64

  /// A public key as apps write it. Text that is no key gives an unusable one, so that an app that requires sealed callers never
  /// gets a caller in clear text.
  public static func key(_ text: String) -> [UInt8] { Base64URL.decode(text.utf8) ?? [] }

  /// Whether callers can be sealed for this public key.
  static func isUsable(key: [UInt8]) -> Bool { HPKE.isUsable(publicKey: key) }

  /// - Parameters:
  ///   - key: the app's public key.
  ///   - call: the call's id as text.
  ///   - scalar: 32 fresh random bytes.
  /// - Returns: nil if the key is unusable.
  static func seal(caller json: [UInt8], for key: [UInt8], call: String, scalar: [UInt8]) -> [UInt8]? {
    let padding = (block - json.count % block) % block
    let text = json + [UInt8](repeating: UInt8(ascii: " "), count: padding)
    return HPKE.seal(text, for: key, info: info, authenticating: Array(call.utf8), scalar: scalar)
  }
}
