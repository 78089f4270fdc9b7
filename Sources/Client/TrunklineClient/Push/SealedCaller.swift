import Foundation
public import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineHPKE

/// A caller that no push service can read: the gateway seals it for this installation's key (docs/design/devices-and-push.md,
/// `enc`).
@_spi(Fuzzing) public enum SealedCaller {
  private static let info = Array("trunkline caller v1".utf8)

  /// The private key of this installation, made once; nil while the secrets are closed.
  static func key(in secrets: any SecretStore, _ random: RandomSource) -> [UInt8]? {
    if let key = secrets.read(SecretKey.sealKey), key.count == HPKE.keyBytes { return key }
    let made = random.bytes(HPKE.keyBytes)
    return secrets.write(SecretKey.sealKey, made) ? made : nil
  }

  /// The public key as `device.put` carries it, Base64url.
  static func publicText(of key: [UInt8]) -> String? {
    HPKE.publicKey(of: key).map { Data($0).base64EncodedString() }?
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Nil if the text was not sealed for this key and call.
  public static func open(_ text: String, call: Identifier, key: [UInt8]) -> Handle? {
    let padded =
      text.replacing("-", with: "+").replacing("_", with: "/") + String(repeating: "=", count: (4 - text.count % 4) % 4)
    guard let sealed = Data(base64Encoded: padded),
      let json = HPKE.open([UInt8](sealed), by: key, info: info, authenticating: Array(call.description.utf8))
    else { return nil }
    return try? JSONDecoder().decode(Handle.self, from: Data(json))
  }
}
