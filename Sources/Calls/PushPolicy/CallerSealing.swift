import COpenSSL
import JSONWebToken

/// The caller, so that only the app can read it and not the push service (E2E-2): HPKE (RFC 9180) in base mode with
/// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM, one message for each key. Stateless; about 0.1 ms.
///
///     enc = Base64url(one-time public key, 32 bytes ‖ text and tag)
///     info = "trunkline caller v1", authenticated data = the call's id as it stands in `call`
///
/// The text is the JSON of `from`, filled with spaces to a multiple of 64 bytes: its length does not tell the name.
public enum CallerSealing {
  static let keyBytes = 32
  private static let info = Array("trunkline caller v1".utf8)
  private static let block = 64
  private static let kem = Array("KEM".utf8) + [0, 0x20]
  private static let suite = Array("HPKE".utf8) + [0, 0x20, 0, 0x01, 0, 0x01]

  /// A public key as apps write it. Text that is none gives an unusable key: an app that wants its callers sealed is not pushed
  /// to without.
  public static func key(_ text: String) -> [UInt8] { Base64URL.decode(text.utf8) ?? [] }

  /// Whether callers can be sealed for this public key: 32 bytes, and no point of small order (RFC 7748 §6.1).
  static func isUsable(key: [UInt8]) -> Bool {
    key.count == keyBytes && exchange(scalar: [UInt8](repeating: 0x77, count: 32), key) != nil
  }

  /// - Parameters:
  ///   - key: the app's public key.
  ///   - call: the call's id as text.
  ///   - scalar: 32 fresh random bytes.
  /// - Returns: nil if the key is unusable.
  static func seal(caller json: [UInt8], for key: [UInt8], call: String, scalar: [UInt8]) -> [UInt8]? {
    let padding = (block - json.count % block) % block
    let text = json + [UInt8](repeating: UInt8(ascii: " "), count: padding)
    return seal(text, for: key, info: info, authenticating: Array(call.utf8), scalar: scalar)
  }

  /// RFC 9180 §6.1, `SealBase`.
  static func seal(_ text: [UInt8], for key: [UInt8], info: [UInt8], authenticating data: [UInt8], scalar: [UInt8]) -> [UInt8]? {
    guard let (own, shared) = exchange(scalar: scalar, key) else { return nil }
    // §4.1, ExtractAndExpand
    let secret = expand(extract([], "eae_prk", shared, kem), "shared_secret", own + key, 32, kem)
    // §5.1, KeySchedule: mode base, no pre-shared key
    let context = [0] + extract([], "psk_id_hash", [], suite) + extract([], "info_hash", info, suite)
    let scheduled = extract(secret, "secret", [], suite)
    let nonce = expand(scheduled, "base_nonce", context, 12, suite)
    return WebPushEncryption.seal(
      text, key: expand(scheduled, "key", context, 16, suite), nonce: nonce, authenticating: data
    ).map { own + $0 }
  }

  /// RFC 9180 §4, `LabeledExtract`.
  private static func extract(_ salt: [UInt8], _ label: String, _ input: [UInt8], _ suite: [UInt8]) -> [UInt8] {
    WebPushEncryption.hmac(key: salt, Array("HPKE-v1".utf8) + suite + Array(label.utf8) + input)
  }

  /// `LabeledExpand`, of one block.
  private static func expand(_ secret: [UInt8], _ label: String, _ info: [UInt8], _ length: Int, _ suite: [UInt8]) -> [UInt8] {
    let labelled = [0, UInt8(length)] + Array("HPKE-v1".utf8) + suite + Array(label.utf8) + info
    return Array(WebPushEncryption.hmac(key: secret, labelled + [1]).prefix(length))
  }

  private static func exchange(scalar: [UInt8], _ peer: [UInt8]) -> (own: [UInt8], shared: [UInt8])? {
    defer { ERR_clear_error() }
    guard scalar.count == keyBytes, peer.count == keyBytes,
      let own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nil, scalar, keyBytes)
    else { return nil }
    defer { EVP_PKEY_free(own) }
    guard let other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nil, peer, keyBytes) else { return nil }
    defer { EVP_PKEY_free(other) }
    guard let context = EVP_PKEY_CTX_new(own, nil) else { return nil }
    defer { EVP_PKEY_CTX_free(context) }
    var publicKey = [UInt8](repeating: 0, count: keyBytes)
    var shared = publicKey
    var (publicLength, sharedLength) = (keyBytes, keyBytes)
    // derive refuses a shared secret of zeros
    guard EVP_PKEY_get_raw_public_key(own, &publicKey, &publicLength) == 1, EVP_PKEY_derive_init(context) == 1,
      EVP_PKEY_derive_set_peer(context, other) == 1, EVP_PKEY_derive(context, &shared, &sharedLength) == 1,
      publicLength == keyBytes, sharedLength == keyBytes
    else { return nil }
    return (publicKey, shared)
  }
}
