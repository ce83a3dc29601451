target datalayout = "e-p:64:64-i64:64-i128:128-v16:16-v32:32-n16:32:64"
define void @k(ptr %out, i32 %count) {
start:
  %none = icmp eq i32 %count, 0
  br i1 %none, label %end, label %body
body:
  %i = phi i32 [ 0, %start ], [ %next, %body ]
  %sum = phi i32 [ 0, %start ], [ %more, %body ]
  %square = mul nuw i32 %i, %i
  %more = add i32 %sum, %square
  %next = add nuw i32 %i, 1
  %done = icmp eq i32 %next, %count
  br i1 %done, label %leave, label %body
leave:
  %place = getelementptr inbounds i32, ptr %out, i64 1
  store i32 %more, ptr %place, align 4
  br label %end
end:
  ret void
}
