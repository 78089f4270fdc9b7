import CTrunklineOpenSSL

/// RFC 9180 in base mode with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM, one message for each key. Stateless; about
/// 0.1 ms.
public enum HPKE {
  /// Length of private and public keys.
  public static let keyBytes = 32
  private static let kem = Array("KEM".utf8) + [0, 0x20]
  private static let suite = Array("HPKE".utf8) + [0, 0x20, 0, 0x01, 0, 0x01]

  /// The public key of a private key, which is 32 random bytes.
  public static func publicKey(of scalar: [UInt8]) -> [UInt8]? {
    guard scalar.count == keyBytes, let own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nil, scalar, keyBytes) else {
      return nil
    }
    defer { EVP_PKEY_free(own) }
    var (key, length) = ([UInt8](repeating: 0, count: keyBytes), keyBytes)
    return EVP_PKEY_get_raw_public_key(own, &key, &length) == 1 && length == keyBytes ? key : nil
  }

  /// Whether the key has 32 bytes, and is not a point of small order (RFC 7748 §6.1).
  public static func isUsable(publicKey key: [UInt8]) -> Bool {
    key.count == keyBytes && exchange(scalar: [UInt8](repeating: 0x77, count: keyBytes), key) != nil
  }

  /// `SealBase` (§6.1): the one-time public key, text and tag.
  /// - Parameter scalar: 32 fresh random bytes.
  /// - Returns: nil if the key is unusable.
  public static func seal(_ text: [UInt8], for key: [UInt8], info: [UInt8], authenticating data: [UInt8], scalar: [UInt8])
    -> [UInt8]?
  {
    guard let own = publicKey(of: scalar), let shared = exchange(scalar: scalar, key) else { return nil }
    let (secret, nonce) = schedule(shared, keys: own + key, info: info)
    return AEAD.seal(text, key: secret, nonce: nonce, authenticating: data).map { own + $0 }
  }

  /// `OpenBase` for the result of `seal`.
  /// - Returns: nil for anything that was not sealed for this key, with this info and these data.
  public static func open(_ sealed: [UInt8], by scalar: [UInt8], info: [UInt8], authenticating data: [UInt8]) -> [UInt8]? {
    guard sealed.count > keyBytes, let own = publicKey(of: scalar) else { return nil }
    let peer = Array(sealed.prefix(keyBytes))
    guard let shared = exchange(scalar: scalar, peer) else { return nil }
    let (secret, nonce) = schedule(shared, keys: peer + own, info: info)
    return AEAD.open(Array(sealed.dropFirst(keyBytes)), key: secret, nonce: nonce, authenticating: data)
  }

  /// `ExtractAndExpand` (§4.1), then `KeySchedule` without a pre-shared key (§5.1).
  private static func schedule(_ shared: [UInt8], keys: [UInt8], info: [UInt8]) -> (key: [UInt8], nonce: [UInt8]) {
    let secret = expand(
      extract([], label: "eae_prk", input: shared, suite: kem), label: "shared_secret", info: keys, length: 32, suite: kem)
    let context =
      [0] + extract([], label: "psk_id_hash", input: [], suite: suite)
      + extract([], label: "info_hash", input: info, suite: suite)
    let scheduled = extract(secret, label: "secret", input: [], suite: suite)
    return (
      expand(scheduled, label: "key", info: context, length: AEAD.keyBytes, suite: suite),
      expand(scheduled, label: "base_nonce", info: context, length: AEAD.nonceBytes, suite: suite)
    )
  }

  /// `LabeledExtract` (§4).
  private static func extract(_ salt: [UInt8], label: String, input: [UInt8], suite: [UInt8]) -> [UInt8] {
    hmacSHA256(key: salt, Array("HPKE-v1".utf8) + suite + Array(label.utf8) + input)
  }

  /// `LabeledExpand`, limited to one block.
  private static func expand(_ secret: [UInt8], label: String, info: [UInt8], length: Int, suite: [UInt8]) -> [UInt8] {
    let labelled = [0, UInt8(length)] + Array("HPKE-v1".utf8) + suite + Array(label.utf8) + info
    return Array(hmacSHA256(key: secret, labelled + [1]).prefix(length))
  }

  private static func exchange(scalar: [UInt8], _ peer: [UInt8]) -> [UInt8]? {
    defer { ERR_clear_error() }
    guard scalar.count == keyBytes, peer.count == keyBytes,
      let own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nil, scalar, keyBytes)
    else { return nil }
    defer { EVP_PKEY_free(own) }
    guard let other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nil, peer, keyBytes) else { return nil }
    defer { EVP_PKEY_free(other) }
    guard let context = EVP_PKEY_CTX_new(own, nil) else { return nil }
    defer { EVP_PKEY_CTX_free(context) }
    var (shared, length) = ([UInt8](repeating: 0, count: keyBytes), keyBytes)
    // derive refuses a shared secret of zeros
    guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer(context, other) == 1,
      EVP_PKEY_derive(context, &shared, &length) == 1, length == keyBytes
    else { return nil }
    return shared
  }
}
