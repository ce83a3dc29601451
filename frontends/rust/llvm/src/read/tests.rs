use crate::layout;
use crate::model::{
    Callee, Constant, IntPredicate, Item, Linkage, Module, Operation, Ordering, Type, Value,
};
use crate::{Program, Symbol};

const LAYOUT: &str = "target datalayout = \"e-i64:64-i128:128\"\n";

fn module(text: &str) -> Module {
    Module::parse("m", &format!("{LAYOUT}{text}")).unwrap()
}

#[test]
fn a_function_with_all_kinds_of_lines() {
    let module = module(
        r#"
%"a::B" = type { i32, %"c" }
%"c" = type { [4 x i8] }

; a::f
; Function Attrs: nounwind
define internal fastcc noundef range(i64 0, 9) i64 @"f g"(ptr noundef readonly align 4 captures(none) %x, i64 noundef %"y z") unnamed_addr #0 personality ptr @p !dbg !5 {
start:
  %slot = alloca [24 x i8], align 8
  %c = icmp samesign ult i64 %"y z", 5, !dbg !6
  br i1 %c, label %"b 1", label %end, !dbg !6

"b 1":                                            ; preds = %start
    #dbg_value(i64 %"y z", !9, !DIExpression(), !6)
  %v = load atomic i64, ptr %x syncscope("x") acquire, align 8, !dbg !6, !noundef !8
  switch i64 %v, label %end [
    i64 -1, label %end
    i64 7, label %out
  ], !dbg !6

end:                                              ; preds = %"b 1", %start
  %r = phi i64 [ 0, %start ], [ %v, %"b 1" ], [ 5, %"b 1" ]
  %g = getelementptr inbounds nuw %"a::B", ptr %slot, i64 %r, i32 1, !dbg !6
  store i64 %r, ptr %g, align 4
  %call = tail call fastcc noundef { i64, i1 } @h(ptr noundef nonnull align 8 %g, i64 range(i64 0, 4) 3, ptr byval([8 x i8]) align 4 %x) #1 [ "o"(i32 1) ], !dbg !7
  %e = extractvalue { i64, i1 } %call, 0
  ret i64 %e

out:                                              ; preds = %"b 1"
  call void asm sideeffect "nop", "~{memory}"(), !srcloc !8
  unreachable
}

declare fastcc { i64, i1 } @h(ptr, i64, ptr) #1
declare void @p(...)

attributes #0 = { nounwind "probe-stack"="inline-asm" }
attributes #1 = { convergent cold noreturn nounwind }
!5 = distinct !DISubprogram(name: "f", scope: !3, file: !4, line: 3)
!4 = !DIFile(filename: "src/lib.rs", directory: "/x")
!6 = !DILocation(line: 4, column: 2, scope: !5)
!7 = !DILocation(line: 8, column: 1, scope: !5, inlinedAt: !6)
"#,
    );
    let function = &module.functions[0];
    assert_eq!((&*function.name, function.spoken()), ("f g", "a::f"));
    assert_eq!(function.linkage, Linkage::Local);
    assert_eq!(
        (function.parameters.len(), function.subprogram),
        (2, Some(5))
    );
    let names: Vec<&str> = function.blocks.iter().map(|block| &*block.name).collect();
    assert_eq!(names, ["start", "b 1", "end", "out"]);
    for block in &function.blocks {
        for instruction in &block.instructions {
            let unsupported = matches!(instruction.operation, Operation::Unsupported(_));
            assert!(!unsupported, "{instruction:?}");
        }
    }
    let [start, middle, end, out] = &function.blocks[..] else {
        panic!("four blocks");
    };
    assert_eq!(start.instructions.len(), 3);
    let Operation::CompareInts(IntPredicate::Ult, a, _) = &start.instructions[1].operation else {
        panic!("a comparison");
    };
    assert_eq!(a.ty, Type::Int(64));
    let Operation::Load(_, access) = &middle.instructions[0].operation else {
        panic!("a load");
    };
    assert_eq!((access.ordering, access.align), (Ordering::Ordered, 8));
    let Operation::Switch { cases, .. } = &middle.instructions[1].operation else {
        panic!("a switch");
    };
    assert_eq!((cases.len(), cases[0].0), (2, u128::MAX));
    assert!(
        matches!(&end.instructions[0].operation, Operation::Phi(incoming) if incoming.len() == 3)
    );
    assert!(
        matches!(&end.instructions[1].operation, Operation::Address(address) if address.indices.len() == 2)
    );
    let Operation::Call(call) = &end.instructions[3].operation else {
        panic!("a call");
    };
    assert_eq!(call.callee, Callee::Symbol("h".into()));
    assert!(call.attributes.convergent && call.attributes.no_return);
    assert_eq!(call.aligns, [Some(8), None, Some(4)]);
    assert!(call.by_value[2].is_some());
    assert!(matches!(
        &call.arguments[1].value,
        Value::Constant(Constant::Int(3))
    ));
    assert_eq!(end.instructions[3].location, Some(7));
    let Operation::Call(call) = &out.instructions[0].operation else {
        panic!("a call");
    };
    assert!(matches!(&call.callee, Callee::Assembly(text, _) if &**text == "nop"));
    assert!(module.functions[2].variadic);
    let program = Program::link(vec![module]).unwrap();
    let place = program.place(0, Some(7)).unwrap();
    assert_eq!(place.to_string(), "src/lib.rs:8:1");
    assert_eq!(place.inlined_at.unwrap().to_string(), "src/lib.rs:4:2");
}

#[test]
fn variables_and_constants() {
    let module = module(
        r#"
@a = private unnamed_addr constant <{ ptr, [2 x i8] }> <{ ptr getelementptr (i8, ptr @b, i64 3), [2 x i8] c"x\00" }>, align 8
@b = external dso_local thread_local global [3 x i8], align 1
@c = weak_odr hidden global i128 -2, align 16, !dbg !4
@d = alias i8, ptr @c
@e = internal unnamed_addr alias i32 (ptr, i8), ptr @a
"#,
    );
    let by_name = |name: &str| match module.items[name] {
        Item::Variable(index) => &module.variables[index],
        other => panic!("{other:?}"),
    };
    assert_eq!(by_name("a").align, Some(8));
    assert!(by_name("a").constant && by_name("b").thread_local);
    assert!(by_name("b").value.is_none());
    assert_eq!(by_name("c").linkage, Linkage::Weak);
    let image = crate::data::image(&by_name("a").ty, by_name("a").value.as_ref().unwrap()).unwrap();
    assert_eq!(image.bytes, [0, 0, 0, 0, 0, 0, 0, 0, b'x', 0]);
    assert_eq!(image.relocations, [(0, "b".into(), 3)]);
    let program = Program::link(vec![module]).unwrap();
    let two = program.constant_bytes("c").unwrap();
    assert_eq!(two, (-2_i128).to_le_bytes());
    assert_eq!(program.resolve(0, "d"), Some((Symbol::Variable(0, 2), 0)));
    assert_eq!(program.symbols(), ["c", "d"]);
}

#[test]
fn local_symbols_stay_in_their_module_and_strong_ones_win() {
    let text = |own: &str, shared: &str| {
        module(&format!(
            "@own = private constant i8 {own}\n@shared = {shared}\ndeclare void @f()\n"
        ))
    };
    let strong = "global i8 2";
    let program = Program::link(vec![text("1", "weak global i8 1"), text("2", strong)]).unwrap();
    assert_eq!(program.resolve(0, "own"), Some((Symbol::Variable(0, 0), 0)));
    assert_eq!(program.resolve(1, "own"), Some((Symbol::Variable(1, 0), 0)));
    let shared = Some((Symbol::Variable(1, 1), 0));
    assert_eq!(program.resolve(0, "shared"), shared);
    assert_eq!(program.resolve(0, "f"), None);
    let twice = Program::link(vec![text("1", strong), text("2", strong)]);
    assert!(twice.unwrap_err().to_string().contains("defined twice"));
}

#[test]
fn what_is_not_known_is_said_with_its_line() {
    let error = Module::parse("m", &format!("{LAYOUT}\nnonsense here\n")).unwrap_err();
    assert!(error.to_string().contains("line 3"), "{error}");
    assert!(Module::parse("m", "").is_err());
}

#[test]
fn nothing_unwinds() {
    let text = "define i32 @f() {\nstart:\n  %a = invoke i32 @g(i32 1) #0\n          to label %on unwind label %off, \
                !dbg !3\non:\n  ret i32 %a\noff:\n  %b = landingpad { ptr, i32 }\n          cleanup\n  resume { ptr, \
                i32 } %b\n}\n";
    let invoke = module(text);
    let blocks = &invoke.functions[0].blocks;
    let [call, jump] = &blocks[0].instructions[..] else {
        panic!("{blocks:?}");
    };
    assert!(matches!(&call.operation, Operation::Call(call) if call.arguments.len() == 1));
    assert_eq!(jump.operation, Operation::Jump(crate::model::BlockId(1)));
    assert!(call.result.is_some() && call.location == Some(3) && jump.location == Some(3));
    let pad = &blocks[2].instructions[0].operation;
    assert!(
        matches!(pad, Operation::Unsupported(reason) if reason.to_string().contains("panic=abort"))
    );
}

/// `%T0 = { %T1, %T1 }` and so on: twice as much with each, however many there are, forwards and backwards.
#[test]
fn types_that_double() {
    for backwards in [false, true] {
        let mut lines: Vec<String> = (0..60)
            .map(|i| format!("%T{i} = type {{ %T{}, %T{} }}\n", i + 1, i + 1))
            .collect();
        lines.push("%T60 = type i32\n".into());
        if backwards {
            lines.reverse();
        }
        let text = format!(
            "{}@a = global %T45 zeroinitializer\n@b = global %T0 zeroinitializer\n",
            lines.concat()
        );
        let module = module(&text);
        assert_eq!(layout::size(&module.variables[0].ty), Some(4 << 15));
        assert_eq!(layout::size(&module.variables[1].ty), None, "2^60 words");
    }
}

#[test]
fn types_made_of_themselves() {
    let module = module("%A = type { i32, %B }\n%B = type { %A }\n@a = external global %A\n");
    assert_eq!(layout::size(&module.variables[0].ty), None);
}

/// What is nested too deep is an error with its line in a variable, and an unsupported instruction in a function.
#[test]
fn nested_too_deep() {
    let types = |depth| format!("{}i8{}", "[1 x ".repeat(depth), "]".repeat(depth));
    let fields = |depth| format!("{}i8{}", "{ ".repeat(depth), " }".repeat(depth));
    let aggregate = |depth: usize| {
        let (mut ty, mut value) = (String::from("i8"), String::from("7"));
        for _ in 0..depth.min(200) {
            value = format!("[{ty} {value}]");
            ty = format!("[1 x {ty}]");
        }
        format!("{ty} {value}")
    };
    let casts = |depth| {
        format!(
            "ptr {}@x{}",
            "getelementptr (i8, ptr ".repeat(depth),
            ", i64 1)".repeat(depth)
        )
    };
    let splats = |depth| {
        format!(
            "<1 x i8> {}1{}",
            "splat (i8 ".repeat(depth),
            ")".repeat(depth)
        )
    };
    let same = |depth| format!("ptr {}@x", "no_cfi ".repeat(depth));
    for depth in [40, 10_000, 1_000_000] {
        for text in [
            format!("{} zeroinitializer", types(depth)),
            format!("{} zeroinitializer", fields(depth)),
            aggregate(depth),
            casts(depth),
            splats(depth),
            same(depth),
        ] {
            let parsed = Module::parse("m", &format!("{LAYOUT}@x = global {text}\n"));
            let body = format!("define void @f() {{\n  store {text}, ptr null\n  ret void\n}}\n");
            let function = &module(&body).functions[0];
            let first = &function.blocks[0].instructions[0].operation;
            if depth == 40 {
                assert!(parsed.is_ok(), "{parsed:?}");
                assert!(matches!(first, Operation::Store { .. }), "{first:?}");
                continue;
            }
            let message = parsed.unwrap_err().to_string();
            assert!(
                message.starts_with("m: line 2 of its LLVM IR: "),
                "{message}"
            );
            assert!(message.contains("nested more than 128 deep"), "{message}");
            assert!(message.len() < 200, "{message}");
            assert!(
                matches!(first, Operation::Unsupported(reason) if reason.to_string().contains("nested more than 128"))
            );
        }
    }
}
