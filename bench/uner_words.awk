# The first `most` sentences of a file of UNER, a word and its label a line. Labels of its trial alone (OTH, B-O) become O.
BEGIN { FS = "\t" }
/^#/ { next }
/^$/ { if (n++ >= most) exit; print; next }
{ tag = $3; if (tag ~ /OTH/ || tag == "B-O") tag = "O"; print $2 "\t" tag }
