unset CDPATH
IFS=
printf '\036paths\n'
for pattern do
  for path in $pattern; do
    if [ -d "$path" ]; then
      real=$(cd -P "$path" 2>/dev/null && pwd -P) || real=$path
      printf 'd\037%s\037%s\n' "$path" "$real"
    elif [ -e "$path" ]; then
      printf 'f\037%s\037\n' "$path"
    fi
  done
done
