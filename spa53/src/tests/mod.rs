mod equal;
mod text;
mod timing;
