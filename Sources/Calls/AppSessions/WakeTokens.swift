import JSONWebToken
public import TrunklineBytes

/// The right that a push gives a woken app: take part in one call, on one device (docs/reference/protocol.md, Session).
public struct Wake: Hashable, Sendable {
  public var call: Identifier
  public var device: DeviceKey
  /// The deadline of its first use: the ring deadline + 30 s. On the monotonic clock, because only the process that made it reads
  /// it: a step of the wall clock costs no call.
  public var firstUseBefore: Instant
  /// The same by the wall clock, milliseconds since 1970. Only in the tokens of a cluster, and read only when the node that made
  /// it is dead.
  public var expiresAt: Int64
  /// The incarnation of the node that made the token and has the call; nil: the node is alone.
  public internal(set) var maker: String?
  public init(call: Identifier, device: DeviceKey, firstUseBefore: Instant, expiresAt: Int64 = 0) {
    (self.call, self.device, self.firstUseBefore, self.expiresAt) = (call, device, firstUseBefore, expiresAt)
  }
}

/// Makes and reads wake tokens: JWTs (HS256) whose key signs nothing else, so that neither a login token nor a wake token passes
/// for the other. Immutable; any thread. Either direction costs about 20 µs.
public struct WakeTokens: Sendable {
  private struct Claims: Codable {
    var call: String
    var sub: String
    var dev: String
    /// Nanoseconds of the monotonic clock; not `exp`, which would be read as a date.
    var until: Int64
    /// In a cluster: the node that made it, and its expiry in seconds since 1970.
    var node: String?
    var exp: Int64?
  }
  private let keys: KeySet
  private let signer: TokenSigner
  private let incarnation: String?

  /// - Parameter random: 256 bits of it are the key. A key per process is enough: no call outlives the process.
  public init?(random: RandomSource) { self.init(key: Array(hexString(random.bytes(Limits.wakeKeyBytes)).utf8)) }

  /// A given key; nil if it is empty.
  public init?(key: [UInt8]) {
    guard let keys = try? KeySet(.HS256, keyFile: key), let signer = try? TokenSigner(keys: keys) else { return nil }
    (self.keys, self.signer, incarnation) = (keys, signer, nil)
  }

  /// For a cluster: each of its nodes can read them and sees which node made them. Nil if the key is empty.
  init?(clusterKey key: [UInt8], incarnation: String) {
    guard let keys = KeySet(deriving: "trunkline wake tokens", from: key), let signer = try? TokenSigner(keys: keys) else {
      return nil
    }
    (self.keys, self.signer, self.incarnation) = (keys, signer, incarnation)
  }

  /// Empty only if OpenSSL fails.
  public func token(_ wake: Wake) -> String {
    var claims = Claims(
      call: wake.call.description, sub: wake.device.user, dev: wake.device.device, until: wake.firstUseBefore.nanoseconds)
    if let incarnation { (claims.node, claims.exp) = (incarnation, wake.expiresAt / 1_000) }
    return (try? signer.sign(claims)) ?? ""
  }

  /// The token's content; nil if it is not one of ours. The caller checks the time.
  public func read(_ token: String) -> Wake? {
    guard let claims = try? keys.claims(of: token, as: Claims.self), let call = Identifier(claims.call) else { return nil }
    let exp = claims.exp ?? 0
    guard (claims.node == nil) == (incarnation == nil), (0...1 << 53).contains(exp) else { return nil }
    var wake = Wake(
      call: call, device: DeviceKey(user: claims.sub, device: claims.dev), firstUseBefore: Instant(nanoseconds: claims.until),
      expiresAt: exp * 1_000)
    wake.maker = claims.node
    return wake
  }
}

/// The wake tokens that were used in time: their devices may use them again while the call or its tombstone lives.
struct WakeUses {
  struct Key: Hashable {
    var call: Identifier
    var device: DeviceKey
  }
  private var uses: Set<Key> = []
  private var ofCall: [Identifier: [DeviceKey]] = [:]
  private var order: [Identifier] = []
  private var head = 0

  var count: Int { uses.count }

  /// Whether this use is valid: the first in time, or a later one.
  mutating func redeem(_ wake: Wake, at now: Instant) -> Bool {
    let key = Key(call: wake.call, device: wake.device)
    if uses.contains(key) { return true }
    guard now < wake.firstUseBefore else { return false }
    uses.insert(key)
    if ofCall[wake.call] == nil { order.append(wake.call) }
    ofCall[wake.call, default: []].append(wake.device)
    if ofCall.count > Limits.wokenCalls { forgetOldest() }
    return true
  }

  /// The call and its tombstone were removed.
  mutating func forget(_ call: Identifier) {
    for device in ofCall.removeValue(forKey: call) ?? [] { uses.remove(Key(call: call, device: device)) }
  }

  private mutating func forgetOldest() {
    while head < order.count {
      let call = order[head]
      head += 1
      guard ofCall[call] != nil else { continue }
      forget(call)
      break
    }
    if head > Limits.wokenCalls {
      order.removeFirst(head)
      head = 0
    }
  }
}
