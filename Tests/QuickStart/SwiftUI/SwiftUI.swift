// What of SwiftUI the quick start and the sample use, so that their views are type-checked and run without a screen on Linux. Never shipped.
public import AppleStandIn
import Dispatch
import Observation

@MainActor public protocol View {
  associatedtype Body: View
  @ViewBuilder var body: Body { get }
  /// Reads all that would be drawn.
  func show()
}
extension View { public func show() { body.show() } }
extension Never: View { public var body: Never { self } }
/// A view that is drawn by the system itself.
extension View where Body == Never {
  public var body: Never { fatalError("a view of the system has no body") }
  public func show() {}
}

@MainActor public protocol Scene { func show() }
@MainActor public protocol App {
  associatedtype Body: Scene
  var body: Body { get }
  init()
}
extension App {
  /// Shows the app, and again when what it showed changes; the process lives until it is killed.
  public static func main() {
    StandInApplication.onContinue { activity in
      MainActor.assumeIsolated { UserActivities.shared.handlers[activity.activityType]?(activity) }
    }
    MainActor.assumeIsolated { Host<Self>().show() }
    dispatchMain()
  }
}
@MainActor private final class Host<A: App> {
  private let app = A()
  func show() {
    withObservationTracking {
      app.body.show()
    } onChange: {
      Task { @MainActor in self.show() }
    }
  }
}

@MainActor @resultBuilder public enum ViewBuilder {
  public static func buildBlock<V: View>(_ view: V) -> V { view }
  public static func buildBlock<each V: View>(_ views: repeat each V) -> Views<repeat each V> { Views(repeat each views) }
}
public struct Views<each V: View>: View {
  let views: (repeat each V)
  init(_ views: repeat each V) { self.views = (repeat each views) }
  public typealias Body = Never
  public func show() { repeat (each views).show() }
}

public struct WindowGroup<Content: View>: Scene {
  let content: () -> Content
  public init(@ViewBuilder content: @escaping () -> Content) { self.content = content }
  public func show() { content().show() }
}
public struct List<Content: View>: View {
  let content: Content
  public init(@ViewBuilder content: () -> Content) { self.content = content() }
  public var body: Content { content }
}
public struct Section<Content: View>: View {
  let content: Content
  public init(_ title: String, @ViewBuilder content: () -> Content) { self.content = content() }
  public var body: Content { content }
}
public struct HStack<Content: View>: View {
  let content: Content
  public init(@ViewBuilder content: () -> Content) { self.content = content() }
  public var body: Content { content }
}
public struct ForEach<Data: RandomAccessCollection, Content: View>: View where Data.Element: Identifiable {
  let data: Data
  let content: (Data.Element) -> Content
  public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) {
    (self.data, self.content) = (data, content)
  }
  public typealias Body = Never
  public func show() { for element in data { content(element).show() } }
}
public struct Text: View {
  public init(_ text: String) {}
  public typealias Body = Never
}
public struct TextField: View {
  public init(_ title: String, text: Binding<String>) {}
  public typealias Body = Never
}
public struct Button: View {
  public init(_ title: String, action: @escaping @MainActor () -> Void) {}
  public typealias Body = Never
}

extension View {
  public func onContinueUserActivity(_ type: String, perform: @escaping @MainActor (NSUserActivity) -> Void) -> Self {
    UserActivities.shared.handlers[type] = perform
    return self
  }
}
/// What a tap in Recents is handed to.
@MainActor public final class UserActivities {
  public static let shared = UserActivities()
  public internal(set) var handlers: [String: @MainActor (NSUserActivity) -> Void] = [:]
}

public struct Binding<Value> {
  let get: () -> Value
  let set: (Value) -> Void
}
@propertyWrapper public struct State<Value> {
  private final class Box {
    var value: Value
    init(_ value: Value) { self.value = value }
  }
  private let box: Box
  public init(wrappedValue: Value) { box = Box(wrappedValue) }
  public var wrappedValue: Value {
    get { box.value }
    nonmutating set { box.value = newValue }
  }
  public var projectedValue: Binding<Value> { Binding(get: { [box] in box.value }, set: { [box] in box.value = $0 }) }
}
