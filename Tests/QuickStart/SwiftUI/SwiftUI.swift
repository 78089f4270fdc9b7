// What of SwiftUI the quick start and the sample use, so that their views are type-checked and run without a screen on Linux. Never shipped.
public import AppleStandIn
import Dispatch
public import Foundation
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
  public static func buildIf<V: View>(_ view: V?) -> Maybe<V, Views<>> { view.map { .first($0) } ?? .second(Views()) }
  public static func buildEither<A: View, B: View>(first: A) -> Maybe<A, B> { .first(first) }
  public static func buildEither<A: View, B: View>(second: B) -> Maybe<A, B> { .second(second) }
}
public enum Maybe<A: View, B: View>: View {
  case first(A), second(B)
  public typealias Body = Never
  public func show() {
    switch self {
    case .first(let view): view.show()
    case .second(let view): view.show()
    }
  }
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
public struct TabView<Content: View>: View {
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
public struct Label: View {
  public init(_ title: String, systemImage: String) {}
  public typealias Body = Never
}
public struct Toggle: View {
  public init(_ title: String, isOn: Binding<Bool>) {}
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
  public func tabItem<V: View>(@ViewBuilder _ label: () -> V) -> Self {
    label().show()
    return self
  }
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

@dynamicMemberLookup public struct Binding<Value> {
  let get: () -> Value
  let set: (Value) -> Void
  public init(get: @escaping () -> Value, set: @escaping (Value) -> Void) { (self.get, self.set) = (get, set) }
  public subscript<Member>(dynamicMember path: WritableKeyPath<Value, Member>) -> Binding<Member> {
    Binding<Member> {
      get()[keyPath: path]
    } set: { member in
      var value = get()
      value[keyPath: path] = member
      set(value)
    }
  }
}
@dynamicMemberLookup @propertyWrapper public struct Bindable<Value: AnyObject> {
  public var wrappedValue: Value
  public var projectedValue: Self { self }
  public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
  public subscript<Member>(dynamicMember path: ReferenceWritableKeyPath<Value, Member>) -> Binding<Member> {
    Binding<Member> { [wrappedValue] in
      wrappedValue[keyPath: path]
    } set: { [wrappedValue] in
      wrappedValue[keyPath: path] = $0
    }
  }
}
/// For the type-checker: UIKit makes the delegate, and there is none.
@MainActor @propertyWrapper public struct UIApplicationDelegateAdaptor<Delegate: NSObject> {
  public init(_ type: Delegate.Type = Delegate.self) {}
  public var wrappedValue: Delegate { fatalError("no UIKit makes a delegate here") }
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
