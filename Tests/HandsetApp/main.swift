import AppleStandIn
import Dispatch
import Foundation

// The smallest app with calls, for the handset's tests. With `--silent` it reports no push.

final class App: NSObject, CXProviderDelegate, PKPushRegistryDelegate {
  let provider = CXProvider(configuration: CXProviderConfiguration())
  let registry = PKPushRegistry(queue: .main)

  override init() {
    super.init()
    provider.setDelegate(self, queue: nil)
    registry.delegate = self
    registry.desiredPushTypes = [.voIP]
  }

  func pushRegistry(_ registry: PKPushRegistry, didUpdate pushCredentials: PKPushCredentials, for type: PKPushType) {}
  func pushRegistry(
    _ registry: PKPushRegistry, didReceiveIncomingPushWith payload: PKPushPayload, for type: PKPushType,
    completion: @escaping @Sendable () -> Void
  ) {
    defer { completion() }
    if CommandLine.arguments.contains("--silent") { return }
    let call = (payload.dictionaryPayload["call"] as? String).flatMap { UUID(uuidString: $0) } ?? UUID()
    let update = CXCallUpdate()
    update.remoteHandle = CXHandle(type: .phoneNumber, value: "+15550009999")
    provider.reportNewIncomingCall(with: call, update: update) { _ in }
  }

  func providerDidReset(_ provider: CXProvider) {}
  func provider(_ provider: CXProvider, perform action: CXAnswerCallAction) { action.fulfill() }
  func provider(_ provider: CXProvider, perform action: CXEndCallAction) { action.fulfill() }
  func provider(_ provider: CXProvider, perform action: CXSetHeldCallAction) { action.fulfill() }
}

let app = App()
dispatchMain()
