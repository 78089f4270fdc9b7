public import Foundation

/// The app's side of its pushes. A VoIP push is reported before the method returns (R1).
///
/// Of the two receive methods the one with metadata is called, as on iOS 26.4; its default calls the older one. By the rules
/// (`hasPushMetadata`) it may be the older one at once, as before.
public protocol PKPushRegistryDelegate: NSObjectProtocol {
  func pushRegistry(_ registry: PKPushRegistry, didUpdate pushCredentials: PKPushCredentials, for type: PKPushType)
  func pushRegistry(
    _ registry: PKPushRegistry, didReceiveIncomingPushWith payload: PKPushPayload, for type: PKPushType,
    completion: @escaping @Sendable () -> Void)
  @available(iOS 26.4, *)
  func pushRegistry(
    _ registry: PKPushRegistry, didReceiveIncomingVoIPPushWith payload: PKPushPayload, metadata: PKVoIPPushMetadata,
    withCompletionHandler completion: @escaping @Sendable () -> Void)
  func pushRegistry(_ registry: PKPushRegistry, didInvalidatePushTokenFor type: PKPushType)
}

/// What `@objc optional` is on Apple's systems.
extension PKPushRegistryDelegate {
  public func pushRegistry(
    _ registry: PKPushRegistry, didReceiveIncomingPushWith payload: PKPushPayload, for type: PKPushType,
    completion: @escaping @Sendable () -> Void
  ) { completion() }
  @available(iOS 26.4, *)
  public func pushRegistry(
    _ registry: PKPushRegistry, didReceiveIncomingVoIPPushWith payload: PKPushPayload, metadata: PKVoIPPushMetadata,
    withCompletionHandler completion: @escaping @Sendable () -> Void
  ) { pushRegistry(registry, didReceiveIncomingPushWith: payload, for: payload.type, completion: completion) }
  public func pushRegistry(_ registry: PKPushRegistry, didInvalidatePushTokenFor type: PKPushType) {}
}
